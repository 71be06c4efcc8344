package admission

import (
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// EvictionCost returns what a started gang loses when it is evicted now, and words it; false
// when it has not started.
func (s *State) EvictionCost(id workload.ID, now time.Time) (cost workload.EvictionCost, text string, started bool) {
	g := s.started[id]
	if g == nil {
		return workload.EvictionCost{}, "", false
	}
	cost = s.evictionCost(g, now)
	return cost, cost.Message(), true
}

// evictionCost returns what a gang, or a part of one, loses when it is evicted now.
func (s *State) evictionCost(g *Started, now time.Time) workload.EvictionCost {
	units, accelerators := g.units()
	cost := workload.EvictionCost{Unit: workload.UnitPods}
	if accelerators {
		cost.Unit = workload.UnitAccelerators
	}
	cost.Since, cost.Checkpoint = g.savedAt(now)
	start, wait := s.restartOf(g)
	cost.Lost = seconds(now.Sub(cost.Since), units)
	cost.Restart, cost.Return = seconds(start, units), seconds(wait, units)
	return cost
}
