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
	cost = s.evictionCost(g, now)
	return cost, lossText(cost), true
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

// lossText returns what an evicted gang loses.
func lossText(cost workload.EvictionCost) string {
	since := "admission"
	if cost.Checkpoint {
		since = "last checkpoint at " + cost.Since.UTC().Format(time.RFC3339)
	}
	text := fmt.Sprintf("it loses %d %s since its %s", cost.Lost, cost.Unit.Seconds(), since)
	if cost.Restart > 0 {
		text += ", about " + strconv.FormatInt(cost.Restart, 10) + " in its next start"
	}
	if cost.Return > 0 {
		text += ", and about " + strconv.FormatInt(cost.Return, 10) + " in the wait for that"
	}
	return text
}
