package admission

import "muster.dev/muster/pkg/decide/placement"

// savepoint begins a what-if within a decision: gangs are moved on the nodes and in the
// quota tree, and undo moves them back. It leaves waiting workloads and verdicts alone.
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
