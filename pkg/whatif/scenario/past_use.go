package scenario

import (
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/state"
)

// PastUse is what a queue is taken to have used before the scenario begins, as the decayed
// average that orders workloads in a ClusterQueue with an admissionScope.
type PastUse struct {
	Queue string `json:"queue"`
	// Namespace may be left out when the queue has one only.
	Namespace string  `json:"namespace,omitempty"`
	Used      Amounts `json:"used"`
}

// pastUsage returns what the queues used before the scenario begins.
func (f *File) pastUsage(queues []state.Queue) (all []quota.PastUsage, err error) {
	var faults fault.List
	for i, past := range f.PastUse {
		path := fault.Index("pastUse", i)
		used, err := past.Used.list(path + ".used")
		faults.Under("", err)
		namespace := past.Namespace
		if namespace == "" {
			namespace = namespaceOf(queues, past.Queue)
		}
		if namespace == "" {
			faults.Add(path+".queue", "%q: there is no queue of this name", past.Queue)
		}
		if f.AdmissionFairSharing == nil {
			faults.Add(path, "counts nothing without admissionFairSharing; want both, or none")
		}
		history := quota.History{At: f.start(), Used: map[resource.Name]float64{}}
		for name, amount := range used {
			history.Used[name] = float64(amount)
		}
		all = append(all, quota.PastUsage{Queue: quota.LocalName(namespace, past.Queue), History: history})
	}
	return all, faults.Err()
}
