package scenario

import (
	"slices"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/policyfile/queuesfile"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// completeQueues fills in what a scenario may leave out of its queues: a queue that
// names no namespace has one of its own name, and without any queue there is the
// queue "default".
func (f *File) completeQueues() {
	for i := range f.Queues {
		if q := &f.Queues[i]; len(q.Namespaces) == 0 && workload.ValidName(q.Name) {
			q.Namespaces = []string{q.Name}
		} else if len(q.Namespaces) == 0 {
			q.Namespaces = []string{"default"} // that the name is wrong is enough
		}
	}
	if len(f.Queues)+len(f.LocalQueues)+len(f.ClusterQueues) == 0 {
		f.Queues = []queuesfile.Queue{{Name: "default", Namespaces: []string{"default"}}}
	}
}

// stateQueues returns the queues that workloads may be submitted to: those under
// "queues", and what the policy names beside them. In a scenario's own queues a
// ClusterQueue that nothing leads to is one, too.
func (f *File) stateQueues() []state.Queue {
	file := f.File
	file.Queues = slices.Clone(file.Queues)
	for i := range file.Queues {
		file.Queues[i].Namespaces = slices.Clone(file.Queues[i].Namespaces)
	}
	file.AddLocalQueues()
	var queues []state.Queue
	for _, q := range file.Queues {
		queues = append(queues, state.Queue{Name: q.Name, Namespaces: q.Namespaces, Strategy: q.Strategy, Rules: q.Rules})
	}
	if f.given {
		return queues
	}
	for _, q := range f.ClusterQueues {
		reached := slices.ContainsFunc(f.LocalQueues, func(l quota.LocalQueue) bool { return l.ClusterQueue == q.Name })
		if !reached && !slices.ContainsFunc(queues, func(known state.Queue) bool { return known.Name == q.Name }) {
			queues = append(queues, state.Queue{Name: q.Name, Namespaces: []string{q.Name}, Strategy: q.Strategy})
		}
	}
	return queues
}
