package door

import (
	"context"
	"math/rand/v2"
	"time"

	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/workload"
)

// repeated is how often something was published without an answer, and when it is
// published again.
type repeated struct {
	times int
	next  time.Time
}

// again notes that it was published. The pauses double from askAgain to most; a part
// of each is chance, so that many objects do not come at once.
func (r *repeated) again(most time.Duration) {
	const doublings = 10 // more would be longer than any bound
	pause := min(askAgain<<min(r.times, doublings), most)
	r.times++
	r.next = time.Now().Add(pause + rand.N(pause/8))
}

// soonStep is the pause between objects that are looked at because messages were lost.
const soonStep = 20 * time.Millisecond

// RepeatSoon has published again what has no answer, without waiting for its time:
// NATS has lost messages.
func (d *Door) RepeatSoon() {
	d.mu.Lock()
	defer d.mu.Unlock()
	after := time.Duration(0)
	for _, k := range d.known {
		if k.submitted.times == 0 && k.cancelled.times == 0 {
			continue
		}
		k.submitted.next, k.cancelled.next = time.Time{}, time.Time{}
		k.submitted.times, k.cancelled.times = min(k.submitted.times, 1), min(k.cancelled.times, 1)
		after += soonStep
		d.queue.AddAfter(k.key, after)
	}
}

// maxMissed is how often queue-manager may not know a workload that is being
// deleted, before it is taken as never submitted.
const maxMissed = 3

// cancellation is how far the cancellation of a workload has come.
type cancellation int

const (
	// cancelUnheard: queue-manager has not said that it knows of it.
	cancelUnheard cancellation = iota
	// cancelHeard: queue-manager tears the workload down.
	cancelHeard
	// cancelDone: nothing of the workload is left.
	cancelDone
)

// cancel cancels a workload, and again until queue-manager has heard it: NATS may
// have lost that.
func (d *Door) cancel(ctx context.Context, id workload.ID, queue, why string, k *known) (how cancellation, again time.Duration, err error) {
	due := time.Until(k.cancelled.next) <= 0
	if due && k.cancelled.times > 0 { // what was heard since may have been lost, too
		k.record = nil
		d.note(id, func(kept *known) { kept.record = nil })
	}
	if err := d.fate(ctx, id, k); err != nil {
		return cancelUnheard, 0, err
	}
	most := repeatMost
	switch r := k.record; {
	case k.rejected != nil:
		return cancelDone, 0, nil
	case r != nil && r.Phase.Final() && !r.Holding:
		return cancelDone, 0, nil
	case r != nil && r.CancelRequested:
		return cancelHeard, 0, nil // its end will be heard of
	case r == nil && k.missed >= maxMissed && due:
		return cancelDone, 0, nil
	case !due:
		return cancelUnheard, time.Until(k.cancelled.next), nil
	case r == nil:
		k.missed++
		most = askAgain
	default:
		queue = r.Queue
	}
	if err := d.messages.Cancel(ctx, queue, &event.WorkloadCancel{Workload: id, Why: why}); err != nil {
		return cancelUnheard, 0, err
	}
	k.cancelled.again(most)
	d.note(id, func(kept *known) { kept.missed, kept.cancelled = k.missed, k.cancelled })
	return cancelUnheard, time.Until(k.cancelled.next), nil
}
