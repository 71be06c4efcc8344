package app

import (
	"fmt"
	"sync"
	"time"

	"muster.dev/muster/pkg/message/query"
)

// The time that a caller may take of the what-ifs of a queue-manager.
const (
	// mostTaken is what it may take at once.
	mostTaken = 20 * time.Second
	// takenRest is how many times as long as it took comes back to it: in the long run it takes
	// a quarter of one core.
	takenRest = 4
	// turnKept is how long the next turn is kept for a caller that was refused because of
	// another; patient callers ask several times in it.
	turnKept = time.Second
)

// turns lets one question in at a time, and bounds the time of each caller: a caller that asks
// without pause leaves turns to others, and is refused when it has taken its time.
type turns struct {
	now func() time.Time

	mu     sync.Mutex
	holder string // whose question is answered; meaningful while busy
	busy   bool
	next   string    // the caller that was refused meanwhile, and comes next; empty for none
	until  time.Time // when the turn of next is free for all
	taken  map[string]taken
}

// taken is how much time a caller had taken at a moment.
type taken struct {
	sum time.Duration
	at  time.Time
}

func newTurns(now func() time.Time) *turns { return &turns{now: now, taken: map[string]taken{}} }

// admitWhatIf admits a what-if. intake asks for many callers, and names each.
func (t *turns) admitWhatIf(caller string, r query.WhatIfRequest) (done func(), err error) {
	return t.admit(caller + "/" + r.For)
}

// admit admits a question of a caller; done ends it.
func (t *turns) admit(caller string) (done func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	began := t.now()
	if sum := t.of(caller, began); sum >= mostTaken {
		wait := ((sum-mostTaken)*takenRest + time.Second).Round(time.Second)
		return nil, query.BusyFor(fmt.Sprintf("your what-ifs have taken %s, of which %s may be taken at once; try again in %s",
			sum.Round(time.Second), mostTaken, wait), wait)
	}
	kept := t.next != "" && t.next != caller && (t.busy || began.Before(t.until))
	if t.busy || kept {
		if t.busy && !kept && caller != t.holder {
			t.next = caller
		}
		return nil, query.Busy("a what-if of another is being tried; try again")
	}
	t.busy, t.holder, t.next = true, caller, ""
	return func() { t.end(caller, began) }, nil
}

// end ends the turn of a caller.
func (t *turns) end(caller string, began time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	t.busy, t.until = false, now.Add(turnKept)
	for other := range t.taken {
		if t.of(other, now) == 0 {
			delete(t.taken, other)
		}
	}
	t.taken[caller] = taken{t.of(caller, now) + now.Sub(began), now}
}

// of is how much of its time a caller has taken and not got back.
func (t *turns) of(caller string, now time.Time) time.Duration {
	had := t.taken[caller]
	return max(0, had.sum-now.Sub(had.at)/takenRest)
}
