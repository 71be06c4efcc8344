package admission

import (
	"fmt"
	"strconv"
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
	cost = g.evictionCost(now)
	return cost, lossText(cost), true
}

// evictionCost returns what the gang loses when it is evicted now.
func (g *Started) evictionCost(now time.Time) workload.EvictionCost {
	units, accelerators := g.units()
	cost := workload.EvictionCost{Since: g.Admitted, Unit: workload.UnitPods}
	if accelerators {
		cost.Unit = workload.UnitAccelerators
	}
	if at := g.Progress.Checkpoint; at.After(g.Admitted) && !at.After(now) {
		cost.Since, cost.Checkpoint = at, true
	}
	cost.Lost = seconds(now.Sub(cost.Since), units)
	cost.Restart = seconds(g.Progress.Startup, units)
	return cost
}

// lossText says what an evicted gang loses.
func lossText(cost workload.EvictionCost) string {
	since := "admission"
	if cost.Checkpoint {
		since = "last checkpoint at " + cost.Since.UTC().Format(time.RFC3339)
	}
	text := fmt.Sprintf("it loses %d %s since its %s", cost.Lost, cost.Unit.Seconds(), since)
	if cost.Restart > 0 {
		text += ", and its last start took " + strconv.FormatInt(cost.Restart, 10)
	}
	return text
}
