package state

import "muster.dev/muster/pkg/spec/workload"

// Demand returns what waiting gangs lack that more nodes would give them.
func (s *State) Demand(most int) workload.Demand { return s.admission.Unmet(most) }
