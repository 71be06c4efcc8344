package admission

import (
	"time"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// searchBudget bounds the steps of one exact search for a gang on one cluster.
const searchBudget = placement.Budget

// The searches for the gangs of one queue may take searchBurst steps at once, and
// searchPerSecond in each second, about fifty milliseconds of work. So a tenant with
// gangs that are hard to place slows the searches of its own queue and takes a small
// part of the leader's time. Packing and counting, which decide nearly all gangs, are
// not limited.
//
// All queues together may take searchBurst and allPerSecond. Queues that have searched
// lately get equal parts of both, but never less than one search may take, so that a
// queue with few searches is not starved.
//
// The clock is the time of decisions, which is recorded, so a replay allows the same.
const (
	searchBurst     = 20 * placement.Budget
	searchPerSecond = 5 * placement.Budget
	allPerSecond    = 10 * placement.Budget
	// askedLately is how long a queue counts as one of those after a search.
	askedLately = 10 * time.Second
)

// SearchVersion is the version of how steps are counted and limited, and of the texts of reasons.
// Terms are recorded with it, because under another version a search may end undecided where
// it did not, or the other way round, and a reason may be another one. It is 0 for terms
// older than it.
const SearchVersion = 15

// allowance is what is left of the steps of a queue, or of all queues.
type allowance struct {
	steps     int
	perSecond int       // as of the last search
	at        time.Time // of the last search; zero before the first
}

// refill adds the steps for the time since the last search.
func (a *allowance) refill(now time.Time, burst, perSecond int) {
	passed := now.Sub(a.at)
	a.perSecond = perSecond
	switch {
	case a.at.IsZero() || passed >= time.Duration(burst)*time.Second/time.Duration(perSecond):
		a.steps = burst
	case passed <= 0:
		return
	default:
		a.steps = min(burst, a.steps+int(passed.Milliseconds())*perSecond/1000)
	}
	a.at = now
}

// until returns when the allowance will have that number of steps.
func (a *allowance) until(steps int) time.Time {
	lacking := time.Duration(max(0, steps-a.steps)) * time.Second / time.Duration(a.perSecond)
	return a.at.Add(lacking.Truncate(time.Second) + time.Second)
}

// refill refills the allowances of a queue and of all queues.
func (d *decision) refill(q *queue) *allowance {
	s := d.state
	if d.searching == nil {
		d.searching = map[*queue]bool{}
		for _, other := range s.sorted {
			if at := other.allowance.at; !at.IsZero() && d.now.Sub(at) < askedLately {
				d.searching[other] = true
			}
		}
	}
	d.searching[q] = true
	s.allowance.refill(d.now, searchBurst, allPerSecond)
	a := &q.allowance
	a.refill(d.now, d.burst(), min(searchPerSecond, allPerSecond/len(d.searching)))
	if t := &d.trying; t.queue == q && !t.known {
		t.known, t.full = true, min(a.steps, s.allowance.steps) >= d.burst()
	}
	return a
}

// burst is how many steps the searches for the gangs of a queue may take at once.
func (d *decision) burst() int { return max(searchBudget, searchBurst/len(d.searching)) }

// trying is the queue of the gang that is tried, and whether it had its whole allowance, of that of
// all queues, too, before the first search for that gang.
type trying struct {
	queue       *queue
	known, full bool
	// rooms are the victims that assess has found, by assignment.
	rooms map[*quota.Assignment]foundRoom
}

// foundRoom is what victimsFor returns: a nil nomination for no victims.
type foundRoom struct {
	nomination *nomination
	victims    []candidate
}

// Searched counts exact searches since the state was made.
type Searched struct {
	// Steps that they took.
	Steps int64
	// Undecided are those that spent a whole budget and have no answer.
	Undecided int64
	// Cut are the searches, for places or for victims, that were put off because
	// their queue, or all queues, had used up the allowance.
	Cut int64
}

// Searched returns the counts.
func (s *State) Searched() Searched { return s.searched }

// solve looks for places for a gang of a queue. cut reports that there is no answer
// because an allowance is used up; such a verdict must not be kept.
func (d *decision) solve(q *queue, fleet *placement.Fleet, w *workload.Workload) (verdict placement.Verdict, cut bool) {
	a, all := d.refill(q), &d.state.allowance
	budget := max(0, min(searchBudget, a.steps))
	if all.steps <= 0 {
		budget = 0
	}
	verdict = fleet.Solve(w, budget)
	a.steps -= verdict.Steps // negative after a search for victims
	all.steps -= verdict.Steps
	cut = verdict.Outcome == placement.Unknown && budget < searchBudget
	count := &d.state.searched
	count.Steps += int64(verdict.Steps)
	switch {
	case cut:
		count.Cut++
	case verdict.Outcome == placement.Unknown:
		count.Undecided++
	}
	return verdict, cut
}

// stepsPerCandidate is the cost, in steps of search, of one candidate for eviction: to
// find it, to sort it, and to compute what it frees.
const stepsPerCandidate = 4

// stepsPerCopy is the cost, in steps of search, of one node that is copied into a fleet of some nodes.
const stepsPerCopy = 4

// spend takes steps off the allowances of a queue and of all queues.
func (d *decision) spend(q *queue, steps int) {
	d.refill(q).steps -= steps
	d.state.allowance.steps -= steps
	d.state.searched.Steps += int64(steps)
}

// maySearch reports whether the workload's queue may still search for victims; if not,
// the workload is tried again when it may.
func (d *decision) maySearch(w *Waiting) bool {
	if d.refill(w.queue).steps > 0 && d.state.allowance.steps > 0 {
		return true
	}
	d.state.searched.Cut++
	if !d.retryWhenFull(w.class) { // it would end like this again: what was found before counts
		w.class.retryBy(d.allowedAt(w.class.queue))
	}
	return false
}

// putOff is why a search is repeated.
const putOff = "undecided: the queue, or all queues together, reached the limit of search steps per second; the search is repeated within seconds"

// allowedAt is when a queue that has searched may search again.
func (d *decision) allowedAt(q *queue) time.Time {
	until := q.allowance.until(searchBudget)
	if all := d.state.allowance.until(1); all.After(until) {
		until = all
	}
	return until
}

// retryWhenFull has a class reopened when its queue has its whole allowance again, and reports
// whether it does: several searches may take more than one budget. After searches that began with
// the whole allowance others would end like them.
func (d *decision) retryWhenFull(class *equivalenceClass) bool {
	if d.trying.known && d.trying.full {
		return false
	}
	class.retryBy(d.fullAt(class.queue))
	class.cut = true
	return true
}

// fullAt is when a queue has its whole allowance again, and all queues together have as much.
func (d *decision) fullAt(q *queue) time.Time {
	until := d.refill(q).until(d.burst())
	if all := d.state.allowance.until(d.burst()); all.After(until) {
		until = all
	}
	return until
}

// repeatBy has reservations and nominations looked at again at that time, without any event.
func (s *State) repeatBy(at time.Time) { s.repeatAt = earliest(s.repeatAt, at) }

// retryWhenAllowed has a class reopened when its queue may search again.
func (d *decision) retryWhenAllowed(class *equivalenceClass) *workload.Reason {
	class.retryBy(d.allowedAt(class.queue))
	class.cut = true
	return searchPutOff()
}

func searchPutOff() *workload.Reason {
	return &workload.Reason{Kind: workload.ReasonUnknown, Message: putOff}
}
