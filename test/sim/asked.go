package sim

import (
	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/simhooks"
)

// What operators asked stays in effect when the database is restored to an older state, or a
// dead letter names the workload.

// effect is what an operator has asked of a workload.
type effect struct {
	what  string
	in    func(workload.Record) bool // whether the record has it
	shown bool                       // an event has shown it
	// excused: NATS may have lost what shows it, or the submission began again.
	excused bool
}

// wants notes what an operator asks of a submission.
func (s *submission) wants(f Fault, what string, in func(workload.Record) bool) {
	if s.effects == nil {
		s.effects = map[Fault]*effect{}
	}
	s.effects[f] = &effect{what: what, in: in}
}

// shows takes in what an event shows to be in effect.
func (s *submission) shows(r workload.Record) {
	for _, e := range s.effects {
		e.shown = e.shown || e.in(r)
	}
}

func (s *submission) excuseEffects() {
	for _, e := range s.effects {
		e.excused = true
	}
}

// lostEffect reports whether an effect that an event had shown is lost, and nothing excuses it.
func (c *checker) lostEffect(each *submission, e *effect, r workload.Record) bool {
	l := c.w.disk
	if e == nil || !e.shown || e.excused || !l.lapse.came || e.in(r) {
		return false
	}
	if l.lapse.losses != c.w.net.losses {
		e.excused = true
		return false
	}
	named, _ := c.w.net.named(each.id)
	return !named
}

// overdueEffects looks for what operators asked and the restored ledger does not have, once a term has
// written what it decided first. Holds end sooner; they are looked at when a workload is admitted.
func (c *checker) overdueEffects() {
	if l := c.w.disk; l.lapse.resumed.IsZero() || l.replayed.Version <= l.lapse.decided {
		return
	}
	for _, each := range c.w.submits.all {
		r := c.w.disk.live[each.id]
		if r == nil || r.Phase.Final() {
			continue
		}
		for _, f := range []Fault{Requeued, Ranked, MovedOver} {
			if e := each.effects[f]; c.lostEffect(each, e, r.Record) {
				c.w.breach("G3", "%s was %s before Postgres was restored to an older state, and neither is it so any more nor is it named", each.name, e.what)
			}
		}
	}
}

// withoutRequests has a term see neither what operators asked in the lost time nor that it was
// in effect.
func (l *ledger) withoutRequests(found simhooks.Found) {
	for i := range found.LastEvents {
		last := &found.LastEvents[i]
		if r := l.live[last.ID]; r != nil {
			last.Hold, last.Priority, last.Queue, last.CancelRequested = r.Hold, r.Priority, r.Queue, r.CancelRequested
			last.Requeued = 0
		}
	}
}

// isRequest reports whether a message is what an operator asks.
func isRequest(m bus.Delivery) bool {
	_, is := payloadOf(m).(event.Request)
	return is
}
