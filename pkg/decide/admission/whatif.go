package admission

import (
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// A what-if leaves the state as it was. There are two kinds. A search within a decision
// moves gangs on the nodes and in the quota tree, and rolls back to a savepoint. A
// question about a decision is answered by a decision on a copy of the state, which
// shares the fleets; they are forked, because a fork keeps its own demand and
// unschedulable set.

// savepoint begins a what-if on all fleets and on quota; undo ends it.
func (s *State) savepoint() (undo func()) {
	quotas := s.tree.Begin()
	fleets := make([]placement.Savepoint, len(s.clusters))
	for i, cluster := range s.clusters {
		fleets[i] = s.fleets[cluster].Begin()
	}
	return func() {
		s.tree.Rollback(quotas)
		for i, cluster := range s.clusters {
			s.fleets[cluster].Rollback(fleets[i])
		}
	}
}

// whatIf calls play with a copy of the state, and undoes what play does on the nodes.
func (s *State) whatIf(copied func() *State, play func(*State)) {
	for _, cluster := range s.clusters {
		fleet := s.fleets[cluster]
		before := fleet.Fork()
		defer fleet.Rollback(before)
	}
	play(copied())
}

// wouldAdmit reports whether a decision admits the workload after a change of the
// configuration, the state, or both; nil is no change.
func (s *State) wouldAdmit(id workload.ID, now time.Time, config *quota.Config, change func(*State)) (admitted bool) {
	s.whatIf(s.clone, func(copied *State) {
		if config != nil {
			tree, err := quota.New(*config)
			if err != nil {
				return
			}
			copied.Reconfigure(tree)
		}
		if change != nil {
			change(copied)
		}
		plan := Decide(copied, now)
		admitted = slices.ContainsFunc(slices.Concat(plan.Admissions, plan.Growths), func(a Admission) bool { return a.Workload == id })
	})
	return admitted
}

// onRebuilt calls play with a state that has the same gangs, but of the waiting
// workloads only the given ones, and no verdicts.
func (s *State) onRebuilt(waiting []*Waiting, play func(*State)) {
	tree, err := quota.New(s.tree.Config())
	if err != nil {
		return
	}
	s.whatIf(func() *State {
		s.clearUnschedulable()
		return s.rebuilt(tree, waiting)
	}, play)
}
