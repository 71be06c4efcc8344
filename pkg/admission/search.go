package admission

import (
	"time"

	"muster.dev/muster/pkg/placement"
	"muster.dev/muster/pkg/workload"
)

// searchBudget bounds the steps of one exact search for a gang on one cluster.
const searchBudget = placement.Budget

// What all searches for the gangs of one queue may take together: searchBurst steps
// at once, and searchPerSecond for each second that passes, some fifty milliseconds
// of work. So whoever submits gangs that are hard to place slows the search for his
// own queue and takes a small part of the leader's time. Packing and counting, by
// which nearly all gangs are decided, go on.
//
// Time is the time of decisions, which is recorded, so a replay allows the same.
const (
	searchBurst     = 20 * placement.Budget
	searchPerSecond = 5 * placement.Budget
)

// SearchVersion names how steps are counted and what searches may take. Terms are
// recorded with it: under another one a gang may be undecided that was decided, or
// the other way round. It is 0 for terms that are older than it.
const SearchVersion = 1

// allowance is what a queue has left of them.
type allowance struct {
	steps int
	at    time.Time // zero before the first search
}

// refill adds what the time since the last search has brought.
func (a *allowance) refill(now time.Time) {
	passed := now.Sub(a.at)
	switch {
	case a.at.IsZero() || passed >= searchBurst/searchPerSecond*time.Second:
		a.steps = searchBurst
	case passed <= 0:
		return
	default:
		a.steps = min(searchBurst, a.steps+int(passed.Milliseconds())*searchPerSecond/1000)
	}
	a.at = now
}

// until is when there will be enough for a whole search.
func (a *allowance) until() time.Time {
	lacking := time.Duration(max(0, searchBudget-a.steps)) * time.Second / searchPerSecond
	return a.at.Add(lacking.Truncate(time.Second) + time.Second)
}

// Searched counts exact searches since the state was made.
type Searched struct {
	// Steps that they took.
	Steps int64
	// Undecided are those that spent a whole budget and have no answer.
	Undecided int64
	// Cut are the searches, for places or for gangs to evict, that were put off
	// because their queue had used up what it may take.
	Cut int64
}

// Searched returns the counts.
func (s *State) Searched() Searched { return s.searched }

// solve looks for places for a gang of a queue. cut reports that there is no answer
// because the queue has used up its allowance: the verdict is not to be remembered.
func (d *decision) solve(q *queue, fleet *placement.Fleet, w *workload.Workload) (verdict placement.Verdict, cut bool) {
	a := &q.allowance
	a.refill(d.now)
	budget := max(0, min(searchBudget, a.steps))
	verdict = fleet.Solve(w, budget)
	a.steps -= verdict.Steps // less than nothing is left after evictions were weighed
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

// stepsPerCandidate is what it costs, in steps of search, to weigh the eviction of one
// gang: to find it, to sort it in, and to see what it brings.
const stepsPerCandidate = 4

// spend takes steps off what a queue may take.
func (d *decision) spend(q *queue, steps int) {
	q.allowance.refill(d.now)
	q.allowance.steps -= steps
	d.state.searched.Steps += int64(steps)
}

// mayLook reports whether the workload's queue may still look for gangs to evict;
// if not the workload is looked at again when it may.
func (d *decision) mayLook(w *Waiting) bool {
	a := &w.queue.allowance
	if a.refill(d.now); a.steps > 0 {
		return true
	}
	w.bucket.putOff()
	d.state.searched.Cut++
	return false
}

// putOff has a bucket looked at again when its queue may search again.
func (b *bucket) putOff() *workload.Reason {
	if until := b.queue.allowance.until(); b.retryAt.IsZero() || until.Before(b.retryAt) {
		b.retryAt = until
	}
	return &workload.Reason{
		Kind:    workload.ReasonUnknown,
		Message: "undecided within its budget: the searches for places of gangs of its queue have taken all that they may at once; it is tried again within seconds",
	}
}
