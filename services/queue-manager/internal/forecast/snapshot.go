package forecast

import (
	"slices"
	"time"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/whatif/estimate"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// snapshotOf is the live state as it is played.
func snapshotOf(now time.Time, s store.LiveState) estimate.Snapshot {
	from := estimate.Snapshot{Now: now, Queues: s.Queues, Policy: s.Policy, PastUsage: s.PastUsage, Learned: s.Learned}
	for _, n := range s.Nodes {
		if n.Present {
			from.Nodes = append(from.Nodes, n.Node)
		}
	}
	for _, w := range s.Workloads {
		if w.Phase == workload.Queued {
			if w.Reason != nil && len(w.Reason.Kinds) > 0 {
				w.PodSets = nowhere(w.PodSets)
			}
			w.Reason = nil // it is looked at again
			from.Waiting = append(from.Waiting, w.Record)
		} else {
			from.Running = append(from.Running, w.Record)
		}
	}
	return from
}

// nowhere returns the pod sets of a workload of a kind that no cluster serves, so that they
// start nowhere: which kinds are served is not stored, and is not known where it is played.
func nowhere(sets []workload.PodSet) []workload.PodSet {
	sets = slices.Clone(sets)
	for i := range sets {
		sets[i].Template.NodeSelector = map[string]string{"muster.dev/kind-is-not-served": "true"}
	}
	return sets
}
