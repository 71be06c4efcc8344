package admission

import (
	"fmt"
	"strconv"
	"time"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Progress is what is known of the work of a started gang.
type Progress struct {
	// Checkpoint is the time of its last checkpoint; zero without a report. No choice of
	// victims depends on it: who reports a false time gains nothing.
	Checkpoint time.Time
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

// evictionCost returns what the gang loses when it is evicted now.
func (d *decision) evictionCost(g *Started) workload.EvictionCost {
	units, _ := g.units()
	cost := workload.EvictionCost{Since: g.Admitted}
	if at := g.Progress.Checkpoint; at.After(g.Admitted) && !at.After(d.now) {
		cost.Since, cost.Checkpoint = at, true
	}
	cost.Lost = seconds(d.now.Sub(cost.Since), units)
	cost.Restart = seconds(g.Progress.Startup, units)
	return cost
}

// mostListed bounds the victims that a choice lists: each of them has it in its reason.
const mostListed = 8

// totalCost adds up what the victims lose, and lists the first of them.
func (d *decision) totalCost(list []candidate) (ids []workload.ID, count int, total workload.EvictionCost) {
	sum := resource.List{}
	for _, c := range list {
		cost := d.evictionCost(c.Started)
		if len(ids) < mostListed {
			ids = append(ids, c.Workload.ID)
		}
		sum = sum.Plus(resource.List{"lost": cost.Lost, "restart": cost.Restart})
	}
	return ids, len(list), workload.EvictionCost{Lost: sum["lost"], Restart: sum["restart"]}
}

// choiceOf compares the victims with the best other set.
func (d *decision) choiceOf(found, other *victims) *workload.PreemptionChoice {
	choice := &workload.PreemptionChoice{}
	choice.Victims, choice.VictimCount, choice.Cost = d.totalCost(found.list)
	if other != nil {
		choice.Other, choice.OtherCount, choice.OtherCost = d.totalCost(other.list)
	}
	return choice
}

// costText says what an evicted gang loses, to those who may see it. The sums of others
// are in the choice, which only operators see.
func costText(g *Started, cost workload.EvictionCost, cut bool) string {
	_, accelerators := g.units()
	unit := "pod-seconds"
	if accelerators {
		unit = "accelerator-seconds"
	}
	since := "admission"
	if cost.Checkpoint {
		since = "last checkpoint at " + cost.Since.UTC().Format(time.RFC3339)
	}
	text := fmt.Sprintf("it loses %d %s since its %s", cost.Lost, unit, since)
	if cost.Restart > 0 {
		text += ", and its last start took " + strconv.FormatInt(cost.Restart, 10)
	}
	if cut {
		return text + "; the search for the cheapest evictions was cut at its limit, so it is not exact"
	}
	return text + "; the search for the cheapest evictions was exact"
}
