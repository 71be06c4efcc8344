package queuesfile

import (
	"fmt"
	"slices"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/manifest/objectpolicy"
)

// neverAllowed names the listed kinds that no list allows.
func (f *File) neverAllowed() []string {
	var notes []string
	for _, q := range f.Queues {
		for _, kind := range q.ObjectPolicy.Kinds {
			if objectpolicy.Never(kind) {
				notes = append(notes, fmt.Sprintf("queue %q: objectPolicy.kinds has %q, which does nothing: no workload may wrap it", q.Name, kind))
			}
		}
	}
	return notes
}

// unreached names the ClusterQueues that nothing can be submitted to.
func (f *File) unreached() []string {
	var notes []string
	for _, c := range f.ClusterQueues {
		leads := slices.ContainsFunc(f.Queues, func(q Queue) bool { return q.Name == c.Name }) ||
			slices.ContainsFunc(f.LocalQueues, func(l quota.LocalQueue) bool { return l.ClusterQueue == c.Name })
		if !leads {
			notes = append(notes, fmt.Sprintf("no queue and no LocalQueue leads to ClusterQueue %q: nothing can be submitted to it", c.Name))
		}
	}
	return notes
}
