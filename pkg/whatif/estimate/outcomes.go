package estimate

import (
	"cmp"
	"slices"
	"time"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Classes of differences between two outcomes of a workload.
const (
	DiffAccepted     = "accepted" // refused without
	DiffRefused      = "refused"  // accepted without
	DiffStarts       = "starts"   // does not without
	DiffStartsNot    = "does not start"
	DiffSooner       = "sooner"
	DiffLater        = "later"
	DiffMoreEvicted  = "evicted more often"
	DiffLessEvicted  = "evicted less often"
	DiffOtherCluster = "another cluster"
)

// Difference is a workload of which two outcomes differ.
type Difference struct {
	Outcome
	Class string `json:"class"`
	// Before is when it started in the first of the two; Started is of the second.
	Before          time.Time `json:"before,omitzero"`
	EvictionsBefore int       `json:"evictionsBefore,omitempty"`
}

// Classify compares the outcomes of a history, in the order of submission. Starts that are less
// than apart from each other are the same. A workload that is in one of both alone is left out.
func Classify(a, b map[workload.ID]*Outcome, apart time.Duration) []Difference {
	var all []Difference
	for id, after := range b {
		before, both := a[id]
		if !both {
			continue
		}
		if class := classOf(before, after, apart); class != "" {
			all = append(all, Difference{Outcome: *after, Class: class, Before: before.Started, EvictionsBefore: before.Evictions})
		}
	}
	slices.SortFunc(all, func(a, b Difference) int { return cmp.Or(a.Submitted.Compare(b.Submitted), cmp.Compare(a.ID, b.ID)) })
	return all
}

// classOf is the class of the first of several differences, in the order of what they mean for
// the workload.
func classOf(before, after *Outcome, apart time.Duration) string {
	moved := after.Started.Sub(before.Started)
	switch {
	case before.Refused != "" && after.Refused == "":
		return DiffAccepted
	case before.Refused == "" && after.Refused != "":
		return DiffRefused
	case before.Started.IsZero() && !after.Started.IsZero():
		return DiffStarts
	case !before.Started.IsZero() && after.Started.IsZero():
		return DiffStartsNot
	case moved <= -apart:
		return DiffSooner
	case moved >= apart:
		return DiffLater
	case after.Evictions > before.Evictions:
		return DiffMoreEvicted
	case after.Evictions < before.Evictions:
		return DiffLessEvicted
	case after.Cluster != before.Cluster:
		return DiffOtherCluster
	}
	return ""
}

// Totals sum outcomes.
type Totals struct {
	Submitted int `json:"submitted"`
	Refused   int `json:"refused"`
	Started   int `json:"started"`
	// Waiting neither started nor ended.
	Waiting   int `json:"waiting"`
	Evictions int `json:"evictions"`
	// Waits of those that started after the beginning, in seconds.
	WaitP50  float64 `json:"waitP50"`
	WaitP90  float64 `json:"waitP90"`
	WaitMax  float64 `json:"waitMax"`
	WaitMean float64 `json:"waitMean"`
}

// Total sums outcomes. What had started before begin counts with its evictions alone.
func Total(all map[workload.ID]*Outcome, begin time.Time) Totals {
	var t Totals
	var waits []float64
	sum := 0.0
	for _, o := range all {
		t.Evictions += o.Evictions
		switch {
		case !o.Started.IsZero() && o.Started.Before(begin):
			continue
		case o.Refused != "":
			t.Refused++
		case !o.Started.IsZero():
			t.Started++
			waits = append(waits, max(0, o.Started.Sub(o.Submitted).Seconds()))
			sum += waits[len(waits)-1]
		case o.Ended.IsZero():
			t.Waiting++
		}
		t.Submitted++
	}
	if len(waits) == 0 {
		return t
	}
	slices.Sort(waits)
	rank := func(part float64) float64 { return waits[max(0, int(part*float64(len(waits))+0.999999)-1)] }
	t.WaitP50, t.WaitP90, t.WaitMax, t.WaitMean = rank(0.5), rank(0.9), waits[len(waits)-1], sum/float64(len(waits))
	return t
}

// Result is what became of all workloads of a history.
type Result struct {
	Totals
	// Held is what they held, in units of resources times seconds.
	Held map[resource.Name]float64 `json:"held"`
	// Utilisation is the part of what the nodes offered that they held.
	Utilisation map[resource.Name]float64 `json:"utilisation,omitempty"`
	// Outcomes are in the order of submission.
	Outcomes []Outcome `json:"outcomes"`
}

// ResultOf sums what was played from a time on, on nodes that offered as much.
func ResultOf(p *Played, begin time.Time, offered map[resource.Name]float64) Result {
	r := Result{Totals: Total(p.Outcomes, begin), Held: p.Held, Utilisation: map[resource.Name]float64{}, Outcomes: []Outcome{}}
	for name, all := range offered {
		if all > 0 {
			r.Utilisation[name] = p.Held[name] / all
		}
	}
	for _, o := range p.Outcomes {
		r.Outcomes = append(r.Outcomes, *o)
	}
	slices.SortFunc(r.Outcomes, func(a, b Outcome) int { return cmp.Or(a.Submitted.Compare(b.Submitted), cmp.Compare(a.ID, b.ID)) })
	return r
}

// ByID returns the outcomes by their workloads.
func (r Result) ByID() map[workload.ID]*Outcome {
	all := make(map[workload.ID]*Outcome, len(r.Outcomes))
	for i := range r.Outcomes {
		all[r.Outcomes[i].ID] = &r.Outcomes[i]
	}
	return all
}
