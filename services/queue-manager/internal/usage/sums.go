package usage

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// span sums what a workload has held since its last step.
func (a *Accounts) span(l *life, to time.Time) {
	from := l.last.At
	if from.Before(a.since) {
		from = a.since
	}
	if to.After(a.until) {
		to = a.until
	}
	if !from.Before(to) || len(l.last.Usage.Held) == 0 {
		return
	}
	switch l.last.Phase {
	case workload.Admitted, workload.Dispatched:
		a.sum(l.last, starting, from, to)
	case workload.Running:
		a.sum(l.last, running, from, to)
		l.runs = append(l.runs, run{from, to, l.last})
	default:
		a.sum(l.last, stopping, from, to)
	}
}

// idle sums what a workload did not use before it ended.
func (a *Accounts) idle(l *life, s Step) {
	l.idleSince = s.Usage.IdleSince
	if l.idleSince.IsZero() {
		return
	}
	for _, r := range l.runs {
		a.sum(r.step, idle, latest(r.from, l.idleSince), r.to)
	}
}

// lose sums the work that an eviction has undone.
func (a *Accounts) lose(l *life) {
	if !l.evicted {
		return
	}
	for _, r := range l.runs {
		to := r.to
		if !l.idleSince.IsZero() && l.idleSince.Before(to) {
			to = l.idleSince
		}
		a.sum(r.step, lost, latest(r.from, l.checkpoint), to)
	}
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// sum adds a span to its rows: one for each flavor and hour, if the report is by them.
func (a *Accounts) sum(s Step, what stage, from, to time.Time) {
	if !from.Before(to) || !a.selects(s.Usage) {
		return
	}
	for from.Before(to) {
		end := to
		if next := a.nextBorder(from); !next.IsZero() && next.Before(to) {
			end = next
		}
		for _, h := range s.Usage.Held {
			if r := a.row(s, h.Flavor, from); r != nil {
				r.add(a.request, what, h, end.Sub(from))
			}
		}
		from = end
	}
}

// selects reports whether the report is of what a step holds.
func (a *Accounts) selects(u *workload.UsageStep) bool {
	q := a.request
	return (q.Queue == "" || q.Queue == u.Queue) && (q.Namespace == "" || q.Namespace == u.Namespace) &&
		(len(q.Within) == 0 || slices.ContainsFunc(q.Within, func(p query.Place) bool { return p.Has(u.Queue, u.Namespace) }))
}

// row returns the row of a step's resources of a flavor at a time; nil when there are too
// many rows.
func (a *Accounts) row(s Step, flavor string, at time.Time) *row {
	key := a.key(s, flavor, at)
	if a.bound != nil {
		key = a.bound(key)
	}
	id := strings.Join(key, "\x00")
	if a.rows[id] == nil {
		if len(a.rows) == query.MaxUsageRows {
			a.err = fmt.Errorf("more than %d rows: ask for less time, fewer keys, or one queue or namespace", query.MaxUsageRows)
			return nil
		}
		a.rows[id] = newRow(key)
	}
	return a.rows[id]
}
