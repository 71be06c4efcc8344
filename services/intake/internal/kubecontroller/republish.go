package kubecontroller

import (
	"context"
	"math/rand/v2"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// publication tracks an unanswered message: how often it was published, and when it is
// published next.
type publication struct {
	times int
	next  time.Time
	// sequence of the last publication in the stream; 0 once its loss has been acted
	// upon, which has happened lost times.
	sequence uint64
	lost     int
}

// recordPublication records a publication. The pauses double from first to most, with jitter so
// that many objects do not repeat at once.
func (r *publication) recordPublication(sequence uint64, first, most time.Duration) {
	r.sequence = sequence
	const doublings = 10 // more exceed every bound
	pause := min(first<<min(r.times, doublings), most)
	r.times++
	r.next = time.Now().Add(pause + rand.N(pause/8))
}

// soonStep is the pause between objects that are enqueued because messages were lost.
const soonStep = 20 * time.Millisecond

// RepublishUnanswered repeats every unanswered message now, because NATS has lost
// messages.
func (c *Controller) RepublishUnanswered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	after := time.Duration(0)
	for _, k := range c.tracked {
		if k.submitted.times == 0 && k.cancelled.times == 0 {
			continue
		}
		k.submitted.next, k.cancelled.next = time.Time{}, time.Time{}
		k.submitted.times, k.cancelled.times = min(k.submitted.times, 1), min(k.cancelled.times, 1)
		after += soonStep
		c.queue.AddAfter(k.key, after)
	}
}

// lostMost bounds the immediate repetitions of a message that is not in the stream any
// more. After them it waits for its time: a message that queue-manager dead-lettered
// has left the stream, too, and may never be answered.
const lostMost = 5

// noteLoss reports, once, that the message is not in the stream any more.
func (r *publication) noteLoss(first uint64) bool {
	if r.sequence == 0 || r.sequence >= first || r.lost >= lostMost {
		return false
	}
	r.sequence, r.next, r.lost = 0, time.Time{}, r.lost+1
	return true
}

// RepublishLost repeats unanswered messages before the stream's first sequence: a purge
// may have removed them. Messages that queue-manager has acknowledged are not in the
// stream either, so the controller queries it before it publishes.
func (c *Controller) RepublishLost(first uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	after := time.Duration(0)
	for _, k := range c.tracked {
		submitted := k.record == nil && k.rejected == nil && k.submitted.noteLoss(first)
		if cancelled := k.cancelled.noteLoss(first); submitted || cancelled {
			after += soonStep
			c.queue.AddAfter(k.key, after)
		}
	}
}

// maxMissed is how often queue-manager must answer that it does not know a workload
// before its deletion treats it as never submitted.
const maxMissed = 3

// cancellation is the progress of a workload's cancellation.
type cancellation int

const (
	// cancelUnheard: queue-manager has not confirmed it.
	cancelUnheard cancellation = iota
	// cancelHeard: queue-manager tears the workload down.
	cancelHeard
	// cancelDone: the workload holds nothing any more.
	cancelDone
)

// cancel cancels a workload, and repeats that until queue-manager confirms it: NATS may
// lose the message.
func (c *Controller) cancel(ctx context.Context, id workload.ID, queue, why string, k *tracked) (how cancellation, again time.Duration, err error) {
	due := time.Until(k.cancelled.next) <= 0
	if due && k.cancelled.times > 0 { // the answer may have been lost, too
		k.record = nil
		c.note(id, func(kept *tracked) { kept.record = nil })
	}
	if err := c.lookUp(ctx, id, k); err != nil {
		return cancelUnheard, 0, err
	}
	most := repeatMost
	switch r := k.record; {
	case k.rejected != nil:
		return cancelDone, 0, nil
	case r != nil && r.Phase.Final() && !r.Holding:
		return cancelDone, 0, nil
	case r != nil && r.CancelRequested:
		return cancelHeard, 0, nil // an event will report its end
	case r == nil && k.missed >= maxMissed && due:
		return cancelDone, 0, nil
	case !due:
		return cancelUnheard, time.Until(k.cancelled.next), nil
	case r == nil:
		k.missed++
		most = queryAgainAfter
	default:
		queue = r.Queue
	}
	sequence, err := c.messages.Cancel(ctx, queue, k.uid, &event.WorkloadCancel{Workload: id, Why: why})
	if err != nil {
		return cancelUnheard, 0, err
	}
	k.cancelled.recordPublication(sequence, queryAgainAfter, most)
	c.note(id, func(kept *tracked) { kept.missed, kept.cancelled = k.missed, k.cancelled })
	return cancelUnheard, time.Until(k.cancelled.next), nil
}
