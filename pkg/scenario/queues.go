package scenario

import (
	"fmt"
	"slices"

	"muster.dev/muster/pkg/book"
	"muster.dev/muster/pkg/quota"
	"muster.dev/muster/pkg/workload"
)

// Queue is a queue, as in queue-manager's queues file.
type Queue struct {
	Name string `json:"name"`
	// Namespaces that it may use, by default one of its own name.
	Namespaces []string       `json:"namespaces,omitempty"`
	Strategy   string         `json:"strategy,omitempty"` // BestEffortFIFO if empty
	Rules      workload.Rules `json:"life,omitzero"`
}

// bookQueues returns the queues that workloads may be submitted to: those under
// "queues", and what the policy names beside them. Without any there is the
// queue "default".
func (f *File) bookQueues() ([]book.Queue, error) {
	var queues []book.Queue
	named := func(name string) int {
		return slices.IndexFunc(queues, func(q book.Queue) bool { return q.Name == name })
	}
	for i, q := range f.Queues {
		path := fmt.Sprintf("queues[%d]", i)
		switch {
		case q.Name == "":
			return nil, fault(path+".name", "is missing")
		case named(q.Name) >= 0:
			return nil, fault(path+".name", "%q is there twice", q.Name)
		}
		if err := q.Rules.Validate(); err != nil {
			return nil, fault(path+".life", "%w", err)
		}
		if len(q.Namespaces) == 0 {
			q.Namespaces = []string{q.Name}
		}
		if q.Strategy == "" {
			q.Strategy = quota.BestEffortFIFO
		}
		queues = append(queues, book.Queue{Name: q.Name, Namespaces: q.Namespaces, Strategy: q.Strategy, Rules: q.Rules})
	}
	reached := map[string]bool{} // ClusterQueues that have a LocalQueue
	for _, local := range f.LocalQueues {
		reached[local.ClusterQueue] = true
		if i := named(local.Name); i < 0 {
			queues = append(queues, book.Queue{Name: local.Name, Namespaces: []string{local.Namespace}})
		} else if !slices.Contains(queues[i].Namespaces, local.Namespace) {
			queues[i].Namespaces = append(queues[i].Namespaces, local.Namespace)
		}
	}
	for _, q := range f.ClusterQueues {
		if !reached[q.Name] && named(q.Name) < 0 {
			queues = append(queues, book.Queue{Name: q.Name, Namespaces: []string{q.Name}, Strategy: q.Strategy})
		}
	}
	if len(queues) == 0 {
		queues = []book.Queue{{Name: "default", Namespaces: []string{"default"}, Strategy: quota.BestEffortFIFO}}
	}
	policy := book.PolicyOf(queues, f.Config)
	return queues, policy.Validate()
}
