// Package usage sums what workloads held over time, from the steps of their lives in the
// history, for reports.
//
//	steps in order --> Accounts: a span from each step of a workload to its next
//	                     |  clipped to the time of the report, by stage
//	                     v
//	                   rows by queue, namespace, ...: exact sums, and waits
//
// A span that began before the report needs the step before it: Unknown lists the workloads
// of which that is missing. Sums are whole numbers of units times microseconds, as precise as
// the times in the history. The package is pure but for Report, which reads the history. It is
// not for what fair sharing remembers, which decays and is package quota's.
package usage

import (
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// Step is a step of a life with its usage.
type Step = state.HistoryRow

// Accounts sum steps. They are for one goroutine.
type Accounts struct {
	request      query.UsageRequest
	since, until time.Time
	lives        map[workload.ID]*life
	// unknown has the steps of workloads whose first step here is not the first of all.
	unknown map[workload.ID][]Step
	rows    map[string]*row
	// bound, unless nil, is of a meter: it returns the key that a row may have. A meter needs no
	// waits.
	bound func(key []string) []string
	err   error
}

// life is a workload between two steps.
type life struct {
	last Step
	// runs are the spans of the present attempt in which it ran, within the report.
	runs []run
	// checkpoint and idleSince are of the attempt that is being evicted.
	checkpoint, idleSince time.Time
	evicted               bool
}

// run is a span in which a workload ran and held the same.
type run struct {
	from, to time.Time
	step     Step
}

// New returns empty accounts of a request that was checked, up to its Until.
func New(request query.UsageRequest) *Accounts {
	return &Accounts{
		request: request, since: request.Since, until: request.Until,
		lives: map[workload.ID]*life{}, unknown: map[workload.ID][]Step{}, rows: map[string]*row{},
	}
}

// Add takes the next step at or after the Since of the report, in the order of the history.
func (a *Accounts) Add(s Step) error {
	l := a.lives[s.Workload]
	switch {
	case l == nil && (a.unknown[s.Workload] != nil || s.Usage.Since.IsZero()): // Since is of the first step of all
		a.unknown[s.Workload] = append(a.unknown[s.Workload], s)
	case l == nil:
		a.begin(s)
	default:
		a.follow(l, s)
	}
	return a.err
}

// Unknown lists the workloads of which the last step before the report is missing.
func (a *Accounts) Unknown() []workload.ID { return slices.Sorted(maps.Keys(a.unknown)) }

// Knows reports whether steps of a workload were added.
func (a *Accounts) Knows(id workload.ID) bool { return a.lives[id] != nil || a.unknown[id] != nil }

// Before takes the last step before the report of a workload, and then those of its steps that
// were added.
func (a *Accounts) Before(s Step) error {
	a.begin(s)
	return a.resume(s.Workload)
}

// resume takes the steps that were put off.
func (a *Accounts) resume(id workload.ID) error {
	steps := a.unknown[id]
	delete(a.unknown, id)
	for _, s := range steps {
		if l := a.lives[id]; l != nil {
			a.follow(l, s)
		} else {
			a.begin(s)
		}
	}
	return a.err
}

// Close ends the spans that are open, at a time at which nothing more has happened.
func (a *Accounts) Close(now time.Time) error {
	for _, id := range a.Unknown() { // the history before is not kept
		if err := a.resume(id); err != nil {
			return err
		}
	}
	for _, l := range a.lives {
		a.span(l, now)
		a.lose(l)
	}
	clear(a.lives)
	return a.err
}

func (a *Accounts) begin(s Step) {
	a.lives[s.Workload] = &life{last: s}
	a.admitted(s, time.Time{})
}

// follow ends the span of a workload with its next step.
func (a *Accounts) follow(l *life, s Step) {
	a.span(l, s.At)
	if l.last.Phase == workload.Running && s.Phase != workload.Running {
		a.idle(l, s)
	}
	if s.Phase == workload.Evicting {
		l.evicted = true
	}
	if at := s.Usage.Checkpoint; at.After(l.checkpoint) {
		l.checkpoint = at
	}
	if len(s.Usage.Held) == 0 {
		a.lose(l)
		*l = life{last: l.last}
	}
	if s.Phase.Final() && len(s.Usage.Held) == 0 {
		delete(a.lives, s.Workload)
		return
	}
	if len(l.last.Usage.Held) == 0 {
		a.admitted(s, l.waitedFrom())
	}
	l.last = s
}

// waitedFrom is when a workload that waits for another attempt began to; zero for others.
func (l *life) waitedFrom() time.Time {
	if l.last.Phase == workload.Queued {
		return l.last.At
	}
	return time.Time{}
}

// admitted notes the wait before an admission.
func (a *Accounts) admitted(s Step, waitedFrom time.Time) {
	if a.bound != nil || s.Phase != workload.Admitted || s.At.Before(a.since) || !s.At.Before(a.until) || !a.selects(s.Usage) {
		return
	}
	from := waitedFrom
	if !s.Usage.Since.IsZero() {
		from = s.Usage.Since
	}
	if from.IsZero() {
		return // it began to wait before the history
	}
	for _, h := range s.Usage.Held {
		if r := a.row(s, h.Flavor, s.At); r != nil {
			r.waits = append(r.waits, max(0, s.At.Sub(from)))
		}
		if !slices.Contains(a.request.By, query.ByFlavor) {
			return
		}
	}
}
