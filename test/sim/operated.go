package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// What operators ask of single workloads and of queues: docs/queues.md, "What an operator
// changes". A request is a message, which may be lost, late, or come again.

// drawOperated draws what operators do.
func drawOperated(w *World) (timed []TimedFault) {
	random := rand.New(rand.NewPCG(w.Seed, uint64(classOperated)+100))
	kinds := []Fault{Held, Held, Held, Requeued, Requeued, Requeued, Ranked, MovedOver, CancelEarly}
	if w.ruled() {
		kinds = append(kinds, QueueHeld)
	}
	for range 8 + random.IntN(14) {
		timed = append(timed, TimedFault{
			At:    5*time.Second + time.Duration(random.Int64N(int64(faultsFor))).Truncate(time.Millisecond),
			Fault: kinds[random.IntN(len(kinds))], Pick: random.Uint64() >> 12,
			For: 2*time.Second + time.Duration(random.Int64N(int64(40*time.Second))).Truncate(time.Millisecond),
		})
	}
	return append(timed, drawOperatedInLostTime(w, random)...)
}

// drawOperatedInLostTime draws what operators do in time that the database loses.
func drawOperatedInLostTime(w *World, random *rand.Rand) (timed []TimedFault) {
	if !w.is(classOlder) {
		return nil
	}
	const requests = 4 // in each lost time
	for _, f := range drawLapses(w) {
		for range requests {
			timed = append(timed, TimedFault{
				At:    f.At + time.Duration(random.Int64N(int64(f.For))).Truncate(time.Millisecond),
				Fault: []Fault{Held, Ranked, MovedOver, Requeued}[random.IntN(4)], Pick: random.Uint64() >> 12,
				For: 20*time.Second + time.Duration(random.Int64N(int64(40*time.Second))).Truncate(time.Millisecond),
			})
		}
	}
	return timed
}

// lateCopy bounds how long after a request a copy of it arrives.
const lateCopy = 20 * time.Second

// byOperator is the name that requests give.
const byOperator = "operator"

// operate asks one thing of one workload, of all that it can be asked of now. Of a
// workload each kind of request is asked once: which of two of a kind counts last is left
// out, because messages may overtake each other.
func (s *submitter) operate(f TimedFault) string {
	var of []*submission
	for _, each := range s.all {
		if r := s.w.disk.live[each.id]; r != nil && each.announced && each.final == "" && !each.asked[f.Fault] && s.mayBe(f.Fault, r.Record) {
			of = append(of, each)
		}
	}
	if len(of) == 0 {
		return ""
	}
	each := of[f.Pick%uint64(len(of))]
	if each.asked == nil {
		each.asked = map[Fault]bool{}
	}
	each.asked[f.Fault] = true
	r := s.w.disk.live[each.id].Record
	switch f.Fault {
	case Held:
		s.holdWorkload(each, f)
		return fmt.Sprintf("%s for %s", each.name, f.For)
	case Requeued:
		s.requeue(each, r.Attempt, f)
		return fmt.Sprintf("%s, attempt %d", each.name, r.Attempt)
	case Ranked:
		priority := int32(f.Pick / 64 % 4)
		each.wants(f.Fault, fmt.Sprintf("given priority %d", priority), func(r workload.Record) bool { return r.Priority == priority })
		s.ask(each, f, &event.WorkloadPriority{Workload: each.id, Priority: priority, By: byOperator}, each.effects[f.Fault].in)
		return fmt.Sprintf("%s, priority %d", each.name, priority)
	default:
		to := map[string]string{"loose": strictQueue, strictQueue: "loose"}[r.Queue]
		each.wants(f.Fault, "moved to queue "+to, func(r workload.Record) bool { return r.Queue == to })
		s.ask(each, f, &event.WorkloadMove{Workload: each.id, Queue: to, By: byOperator}, func(r workload.Record) bool { return r.Queue == to || r.Phase != workload.Queued })
		return fmt.Sprintf("%s to queue %s", each.name, to)
	}
}

// mayBe reports whether an operator would ask this of a workload as it is now. Where each
// queue has the quota of its largest gang, a gang may be too large for the other queue, and
// where there are policies the queues have other grace periods.
func (s *submitter) mayBe(f Fault, r workload.Record) bool {
	switch f {
	case Held:
		return r.Phase == workload.Queued && r.Hold == nil
	case Requeued:
		return isUp(r)
	case Ranked:
		return true
	default:
		return r.Phase == workload.Queued && !s.w.tight() && !s.w.ruled()
	}
}

// isUp reports whether a workload was admitted and is not being taken down.
func isUp(r workload.Record) bool {
	return r.Phase == workload.Admitted || r.Phase == workload.Dispatched || r.Phase == workload.Running
}

// holdWorkload holds a workload for a while. After that the operator resumes it whenever
// it is found held: a hold may arrive after its end.
func (s *submitter) holdWorkload(each *submission, f TimedFault) {
	each.wants(f.Fault, "held", func(r workload.Record) bool { return r.Hold != nil })
	resumes := false
	s.ask(each, f, &event.WorkloadHold{Workload: each.id, By: byOperator}, func(r workload.Record) bool {
		return resumes || r.Hold != nil || r.Phase != workload.Queued
	})
	var resume func()
	resume = func() {
		resumes, each.resumed = true, true
		if r := s.w.disk.live[each.id]; r != nil && r.Hold != nil {
			s.request(each, &event.WorkloadHold{Workload: each.id, Resume: true, By: byOperator})
		}
		s.w.after(tryAgain, resume)
	}
	s.w.after(f.For, resume)
}

// requeue has an attempt taken down.
func (s *submitter) requeue(each *submission, attempt int, f TimedFault) {
	s.w.check.requeues[attemptKey{each.id, attempt}] = true
	each.wants(f.Fault, fmt.Sprintf("requeued in attempt %d", attempt), func(r workload.Record) bool {
		return r.Attempt > attempt || r.Attempt == attempt && (r.Phase == workload.Evicting || r.Phase == workload.Cancelling)
	})
	r := &event.WorkloadRequeue{Workload: each.id, Attempt: attempt, By: byOperator}
	if s.w.Bug == BugAnyAttempt {
		r.Attempt = 0
	}
	s.ask(each, f, r, func(r workload.Record) bool { return r.Attempt > attempt || !isUp(r) })
}

// ask sends a request until its workload is as it asks, or has ended. Half of the time a
// copy of it arrives late.
func (s *submitter) ask(each *submission, f TimedFault, payload event.Payload, done func(workload.Record) bool) {
	if f.Pick&(1<<30) != 0 {
		s.w.after(time.Duration(f.Pick%uint64(lateCopy)), func() { s.request(each, payload) })
	}
	var again func()
	again = func() {
		if r, known := s.w.disk.record(each.id); known && (r.Phase.Final() || done(r)) {
			return
		}
		s.request(each, payload)
		s.w.after(tryAgain, again)
	}
	again()
}

// request sends a request of an operator.
func (s *submitter) request(each *submission, payload event.Payload) {
	s.count++
	envelope, err := event.New(fmt.Sprintf("operator-%d", s.count), submitterSource, s.w.now, payload)
	if err != nil {
		panic(err) // plain data can always be encoded
	}
	data, err := envelope.Encode()
	if err != nil {
		panic(err) // the same
	}
	s.send(event.WorkloadSubject(each.queue), envelope.ID, data, func() {})
}

// checkOperated looks at what a commit does of what operators asked.
func (c *checker) checkOperated(changes state.Changes) {
	l := c.w.disk
	for _, reserved := range changes.Reserved {
		r, was := l.live[reserved.Workload], c.was[reserved.Workload]
		if r == nil || isUp(was) { // one that grows
			continue
		}
		each := c.w.submits.by[r.ID]
		if r.Hold != nil || was.Hold != nil && (each == nil || !each.resumed) || each != nil && !each.resumed && c.lostEffect(each, each.effects[Held], r.Record) {
			c.w.breach("G6", "%s is held and was admitted", c.w.submits.nameOf(r.ID))
		}
	}
	for _, h := range changes.History {
		if h.Phase != workload.Evicting || c.was[h.Workload].Phase == workload.Evicting || h.Reason == nil || h.Reason.Kind != workload.ReasonRequeued {
			continue
		}
		c.made[madeRequeued]++
		if !c.requeues[attemptKey{h.Workload, h.Attempt}] {
			c.w.breach("G6", "attempt %d of %s was requeued, which no operator had asked for", h.Attempt, c.w.submits.nameOf(h.Workload))
		}
	}
	for _, r := range changes.Updated {
		switch was, known := c.was[r.ID]; {
		case !known:
		case r.Hold != nil && was.Hold == nil:
			c.made[madeHolds]++
		case r.Hold == nil && was.Hold != nil && r.Phase == workload.Queued:
			c.made[madeResumed]++
		case r.Priority != was.Priority:
			c.made[madeRanked]++
		case r.Queue != was.Queue:
			c.made[madeMoved]++
		}
	}
}

// reordered reports whether a commit has changed who comes first, other than by decisions.
func (c *checker) reordered() bool {
	for id, was := range c.was {
		if r := c.w.disk.live[id]; r != nil && (r.Priority != was.Priority || r.Queue != was.Queue || (r.Hold == nil) != (was.Hold == nil)) {
			return true
		}
	}
	return false
}
