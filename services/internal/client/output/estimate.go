package output

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// Estimates is the table of when workloads that wait will start.
func Estimates(records []workload.Record, now time.Time) Table {
	t := Table{Header: []string{"NAMESPACE", "NAME", "QUEUE", "POSITION", "STARTS IN (P50)", "BY (P90)", "ESTIMATED", "NOTE"}, Long: []string{"NOTE"}}
	for i := range records {
		r := &records[i]
		row := []string{r.Namespace, r.Name, r.Queue, orDash(int(r.Position)), "-", "-", "-", "not estimated yet"}
		if e := r.Estimate(); e != nil {
			row[6], row[7] = age(e.MadeAt, now)+" ago", unknownStart(e)
			if !e.P50.IsZero() {
				row[4], row[5] = until(e.P50, now), until(e.P90, now)
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// PastEstimates is the table of what was estimated for a workload, and how far the start was from it.
func PastEstimates(past []query.PastEstimate, history []query.HistoryEntry) Table {
	t := Table{Header: []string{"ESTIMATED", "START (P50)", "BY (P90)", "STARTED", "NOTE"}, Long: []string{"NOTE"}}
	for _, e := range past {
		row := []string{e.MadeAt.Local().Format(time.DateTime), "-", "-", "-", cmp.Or(e.Unknown, "-")}
		if !e.P50.IsZero() {
			row[1], row[2] = e.P50.Local().Format(time.DateTime), e.P90.Local().Format(time.DateTime)
		}
		if started := e.StartAfter(history); !started.IsZero() {
			row[3] = started.Local().Format(time.DateTime)
			if !e.P50.IsZero() {
				row[4] = offBy(started.Sub(e.P50), started.After(e.P90))
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// offBy returns how far a start was from its p50.
func offBy(off time.Duration, afterP90 bool) string {
	switch {
	case afterP90:
		return duration.HumanDuration(off) + " after the p50, after the p90"
	case off < 0:
		return duration.HumanDuration(-off) + " before the p50"
	}
	return duration.HumanDuration(off) + " after the p50"
}

// Score returns what came of the estimates of a queue; empty before the first.
func Score(s *query.EstimateScore) string {
	if s == nil || s.Started == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f%% started by the p90, %.0f%% by the p50, of the last %d; median distance from the p50 %s",
		100*s.P90Coverage, 100*s.P50Coverage, s.Started, duration.HumanDuration(time.Duration(s.MedianErrorSeconds*float64(time.Second))))
}

// WhatIf is the table of what a change would do.
func WhatIf(answer query.WhatIfAnswer, now time.Time) Table {
	t := Table{Header: []string{"NAMESPACE", "NAME", "QUEUE", "STARTS WITHOUT", "STARTS WITH", "NOTE"}, Long: []string{"NOTE"}}
	in := func(at time.Time) string {
		if at.IsZero() {
			return "unknown"
		}
		return within(at, now)
	}
	for _, w := range answer.Workloads {
		row := []string{w.Namespace, w.Name, w.Queue, in(w.Before), in(w.After), "later"}
		switch {
		case w.Refused != "":
			row[3], row[4], row[5] = "-", "-", "refused: "+w.Refused
		case w.Submitted:
			row[3], row[5] = "-", "submitted"
		case w.Evicted:
			row[3], row[5] = "runs", "evicted"
		case w.Spared:
			row[4], row[5] = "runs", "not evicted"
		case w.Before.IsZero() || !w.After.IsZero() && w.After.Before(w.Before):
			row[5] = "sooner"
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// WhatIfSame returns what stays as it is.
func WhatIfSame(answer query.WhatIfAnswer) string {
	waiting := fmt.Sprintf("%d waiting workloads start", answer.Same)
	if answer.Same == 1 {
		waiting = "1 waiting workload starts"
	}
	text := "Nothing differs: " + waiting + " as without the change."
	if len(answer.Workloads) > 0 {
		text = waiting + " as without the change."
	}
	if answer.Same == 0 {
		text = "The change affects no waiting workload."
		if len(answer.Workloads) > 0 {
			text = "Nothing else waits."
		}
	}
	if answer.LeftOut > 0 {
		text += fmt.Sprintf(" %d far back in their queues were not simulated.", answer.LeftOut)
	}
	return text
}

// starts returns in one cell when a workload will start.
func starts(r *workload.Record, now time.Time) string {
	switch e := r.Estimate(); {
	case r.Phase != workload.Queued || e == nil:
		return "-"
	case e.P50.IsZero():
		return "unknown"
	default:
		return fmt.Sprintf("%s, by %s", within(e.P50, now), until(e.P90, now))
	}
}

// StartsIn returns in a line when a workload will start; empty when nothing was estimated.
func StartsIn(r *workload.Record, now time.Time) string {
	switch e := r.Estimate(); {
	case r.Phase != workload.Queued || e == nil:
		return ""
	case e.P50.IsZero():
		return "unknown: " + unknownStart(e)
	case !e.P90.After(now): // both times have passed since it was estimated
		return fmt.Sprintf("expected now; estimated %s ago", age(e.MadeAt, now))
	case !e.P50.After(now):
		return fmt.Sprintf("expected now; by %s (p90); estimated %s ago", e.P90.Local().Format(time.DateTime), age(e.MadeAt, now))
	default:
		return fmt.Sprintf("in about %s, at %s (p50); by %s (p90); estimated %s ago",
			until(e.P50, now), e.P50.Local().Format(time.DateTime), e.P90.Local().Format(time.DateTime), age(e.MadeAt, now))
	}
}

func unknownStart(e *workload.Estimate) string {
	why := e.Unknown
	if len(e.Behind) > 0 {
		why += ": " + strings.Join(e.Behind, ", ")
	}
	return cmp.Or(why, "-")
}

// until prints how far a time is ahead; a start that is due is so at any moment.
func until(then, now time.Time) string {
	if !then.After(now) {
		return "now"
	}
	return duration.HumanDuration(then.Sub(now))
}

// within is until with its preposition.
func within(then, now time.Time) string {
	if !then.After(now) {
		return until(then, now)
	}
	return "in " + until(then, now)
}
