package admission

import (
	"time"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Progress is what is known of the work of a started gang.
type Progress struct {
	// Checkpoint is the time of its last checkpoint; zero without a report.
	Checkpoint time.Time
	// Interval is the longest that its work is taken to go unsaved. With zero the regret of
	// its eviction is all its work since the admission, whatever Checkpoint is.
	Interval time.Duration
	// Startup is how long it took from the admission until all pods were ready; zero
	// while unknown.
	Startup time.Duration
	// Running: all pods have been ready.
	Running bool
}

// SetProgress updates the progress of a started gang.
func (s *State) SetProgress(id workload.ID, p Progress) {
	if g := s.started[id]; g != nil {
		g.Progress = p
	}
}

// mostListed bounds the victims that a choice lists: each of them has it in its reason.
const mostListed = 8

// totalCost adds up what the victims lose, and lists the first of them.
func (d *decision) totalCost(list []candidate) (ids []workload.ID, count int, total workload.EvictionCost) {
	sum := resource.List{}
	for i, c := range list {
		cost := d.state.evictionCost(c.Started, d.now)
		if i == 0 {
			total.Unit = cost.Unit
		} else if total.Unit != cost.Unit {
			total.Unit = workload.UnitBoth
		}
		if len(ids) < mostListed {
			ids = append(ids, c.Workload.ID)
		}
		sum = sum.Plus(resource.List{"lost": cost.Lost, "restart": cost.Restart, "return": cost.Return})
	}
	total.Lost, total.Restart, total.Return = sum["lost"], sum["restart"], sum["return"]
	return ids, len(list), total
}

// choiceOf compares the victims with the best other set.
func (d *decision) choiceOf(found, other *victims) *workload.PreemptionChoice {
	choice := &workload.PreemptionChoice{}
	choice.Victims, choice.VictimCount, choice.Cost = d.totalCost(found.list)
	if other != nil {
		choice.Other, choice.OtherCount, choice.OtherCost = d.totalCost(other.list)
		choice.By, choice.Counted, choice.OtherCounted = found.decided(other)
	}
	return choice
}

// costText returns what an evicted gang loses, to those who may see it. The sums of others
// are in the choice, which only operators see.
func costText(cost workload.EvictionCost, cut bool) string {
	if cut {
		return cost.Message() + "; the search for the cheapest evictions was cut at its limit, so it is not exact"
	}
	return cost.Message() + "; the search for the cheapest evictions was exact"
}
