package admission

import (
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// A question about a decision is answered by a decision on a copy of the state. The copy
// shares the fleets. They are forked, because a fork keeps its own demand and
// unschedulable set. A search within a decision only needs a savepoint (savepoint.go).

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
