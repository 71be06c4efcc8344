package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/simhooks"
)

// Postgres is restored to an older state: an asynchronous standby takes over, or a backup is
// restored, while services, NATS and the API server go on.

// lapse is what is to be held against a ledger restored to an older state.
type lapse struct {
	pending bool // it will
	came    bool // it has
	// settles is when everything is to be as the ledger says, if nothing fails until
	// then; zero while no term has begun since.
	resumed time.Time
	// forgotten are the workloads that events reported as queued and the ledger does not
	// know, each with how often NATS had lost messages when the lost time began.
	forgotten map[workload.ID]int
	losses    int
}

// backInTime notes the state of Postgres and brings it back after the lost time, at
// once or after some seconds; in one of four with the stream of kept submissions lost.
func (n *nemesis) backInTime(f TimedFault) string {
	w, l := n.w, n.w.disk
	if l.version == 0 || l.lapse.pending || l.real != nil {
		return "" // a new database is refused; real tables have no copy
	}
	before, losses := l.copied(), w.net.losses
	l.lapse.pending = true
	away := awayAfter(f)
	w.after(f.For, func() {
		lost := l.version - before.version
		l.lapse.pending = false
		l.comeBack(before)
		l.era++
		l.dropSession()
		w.net.away(postgresServer, away)
		if f.Pick&1024 != 0 && f.Pick&2048 != 0 {
			w.net.streams[bus.KeptStream] = nil
			delete(w.net.streams, bus.KeptStream)
			w.net.ensure()
		}
		n.last = later(n.last, w.now.Add(away))
		w.tell("Postgres is as it was %s ago, at version %d, without %d commits", f.For, l.version, lost)
		w.check.forgetAttempts(w.now.Add(-f.For), losses)
		l.relapse(losses)
	})
	return "by " + f.For.String()
}

// copied is the state of the tables now.
func (l *ledger) copied() *ledger {
	c := *l
	c.live, c.archive, c.nodes, c.marks = maps.Clone(l.live), maps.Clone(l.archive), maps.Clone(l.nodes), maps.Clone(l.marks)
	c.past = maps.Clone(l.past)
	c.shapes, c.quarantine, c.holds = maps.Clone(l.shapes), maps.Clone(l.quarantine), map[workload.ID][]hold{}
	for id, holds := range l.holds {
		c.holds[id] = slices.Clone(holds)
	}
	c.history, c.outbox, c.commits = slices.Clone(l.history), slices.Clone(l.outbox), slices.Clone(l.commits)
	c.replayed = l.replayed.Clone()
	return &c
}

// comeBack makes the tables those of a copy.
func (l *ledger) comeBack(c *ledger) {
	l.epoch, l.version, l.lastOrder, l.seq = c.epoch, c.version, c.lastOrder, c.seq
	l.live, l.archive, l.nodes, l.marks, l.shapes, l.quarantine, l.holds = c.live, c.archive, c.nodes, c.marks, c.shapes, c.quarantine, c.holds
	l.history, l.outbox, l.commits, l.replayed = c.history, c.outbox, c.commits, c.replayed
	l.past = c.past
	l.policy, l.bounds, l.rules = c.policy, c.bounds, c.rules
	l.w.check.dirty = true
}

// relapse brings the submitter, who knows only what events reported, and the checks to
// what a ledger restored to an older state knows.
func (l *ledger) relapse(losses int) {
	l.lapse.came, l.lapse.resumed, l.lapse.losses = true, time.Time{}, losses
	if l.lapse.forgotten == nil {
		l.lapse.forgotten = map[workload.ID]int{}
	}
	for _, each := range l.w.submits.all {
		record, known := l.record(each.id)
		switch {
		case known && record.Phase.Final():
		case known:
			each.final = ""
		case !each.heard:
			each.begin() // a submitter that heard nothing sends it again
		default:
			if each.final != "" && !each.ended {
				each.final = ""
			}
			l.lapse.forgotten[each.id] = losses
		}
		if !known {
			delete(l.w.check.promised, each.id)
		}
	}
	clear(l.w.check.within)
	clear(l.w.check.large)
}

// begin has a submitter start again: it was never heard, or has to submit again.
func (s *submission) begin() {
	s.announced, s.heard, s.ended, s.stored, s.running, s.final = false, false, false, -1, time.Time{}, ""
	s.excused = true // its attempts are counted from the first one again
}

// resumed notes that a term has begun.
func (l *ledger) resumed() {
	l.w.check.relearns()
	if l.lapse.came && l.lapse.resumed.IsZero() {
		l.lapse.resumed = l.w.now
	}
}

// settledAfter is how long after the begin of the next term without faults nothing may
// run that the ledger does not know, and nothing be lost that is not named.
const settledAfter = time.Minute

// settled reports whether all is to be as the ledger says.
func (l *ledger) settled() bool {
	switch p := l.lapse; {
	case !p.came:
		return true
	case p.resumed.IsZero():
		return false
	default:
		return l.w.now.Sub(later(p.resumed, l.w.nemesis.last)) > settledAfter
	}
}

// overdueLapse looks at what a ledger restored to an older state must have brought about.
func (c *checker) overdueLapse() {
	w, l := c.w, c.w.disk
	if !l.lapse.came {
		return
	}
	for _, each := range w.submits.all {
		losses, forgotten := l.lapse.forgotten[each.id]
		if !forgotten {
			continue
		}
		named, final := w.net.named(each.id)
		record, known := l.record(each.id)
		unnamed := losses != w.net.losses // what NATS has lost, too, cannot be named
		switch {
		case known:
			delete(l.lapse.forgotten, each.id)
			if !record.Phase.Final() {
				each.final = "" // it is queued again, whatever events reported
			}
		case named && final, unnamed && each.ended:
			delete(l.lapse.forgotten, each.id)
			each.final, each.doubtful = rejectedPhase, true // it had ended, and its record is lost
		case named, unnamed:
			delete(l.lapse.forgotten, each.id)
			each.begin()
		case l.settled():
			w.breach("G3", "%s was reported as queued, and is neither in the ledger, which was restored to an older state, nor named", each.name)
		}
	}
	if l.settled() {
		c.checkAdmitted()
	}
}

// checkAdmitted: whatever runs is admitted.
func (c *checker) checkAdmitted() {
	for _, p := range c.w.cluster.podsOf(func(p *pod) bool { return p.workload != "" && p.node != "" && !p.deleting }) {
		if r := c.w.disk.live[p.workload]; r == nil || !r.Holding || r.Attempt != p.attempt {
			c.w.breach("G1", "pod %s of %s attempt %d runs unadmitted a minute after Postgres was restored to an older state", p.name, c.w.submits.nameOf(p.workload), p.attempt)
		}
	}
}

// reach notes, for the process that runs, that the ledger has a commit.
func (l *ledger) reach(version int64) {
	m := l.w.cur.m
	m.reached = max(m.reached, version)
}

// behind returns simhooks.ErrCommitMissing when the ledger does not have a commit that the process
// has known it to have.
func (l *ledger) behind(reached int64) error {
	if l.version < reached && l.w.Bug != BugWatermarkMoves {
		return fmt.Errorf("%w: it is at version %d, and has been at %d", simhooks.ErrCommitMissing, l.version, reached)
	}
	return nil
}

// epochOf is the epoch of a commit; 0 when there is none of the version.
func (l *ledger) epochOf(version int64) int64 {
	for _, c := range slices.Backward(l.commits) {
		if c.version == version {
			return c.epoch
		}
	}
	return 0
}

// nextEpoch takes an epoch after the stored one and a known one.
func (l *ledger) nextEpoch(m *machine, known int64) {
	if l.w.Bug == BugSameEpoch {
		l.epoch++
		return
	}
	least, step := simhooks.LeastEpochAndStep(m.now(), known, l.w.random.Uint64())
	l.epoch = max(l.epoch, least) + step
}

// raiseEpoch makes the epoch larger than those in the streams, as the engine does.
func (t *term) raiseEpoch() error {
	w := t.w
	known, err := simhooks.LastEpoch(context.Background(), &connection{w: w})
	if err != nil || known < t.epoch || w.Bug == BugSameEpoch {
		return err
	}
	return w.call(postgresServer, "raise", func() error {
		if err := w.disk.fence(t.epoch); err != nil {
			return err
		}
		w.disk.nextEpoch(t.m, known)
		t.m.memory.StartTerm(t.epoch, w.disk.epoch)
		t.epoch = w.disk.epoch
		w.disk.real.leads(t.epoch, t.m.name)
		w.tell("%s takes epoch %d, after %d of the streams", t.m.name, t.epoch, known)
		return nil
	})
}

// recover brings streams and ledger together before anything else of the term, as the
// engine does, and returns up to where it has compared the streams.
func (t *term) recover(c *connection) (compared map[string]simhooks.Watermark, ok bool) {
	ctx, l := context.Background(), t.w.disk
	if t.w.Bug == BugUncompared {
		return nil, true
	}
	found, err := simhooks.FindAhead(ctx, l, c)
	if err != nil {
		return nil, false
	}
	for i := range found.LastEvents {
		found.LastEvents[i].Holding = found.LastEvents[i].Holding && t.w.Bug != BugBeside
	}
	var last time.Time
	if t.w.call(postgresServer, "LastCommit", func() error {
		if len(l.commits) > 0 {
			last = l.commits[len(l.commits)-1].at
		}
		return nil
	}) != nil {
		return nil, false
	}
	save := func(applied []bus.Delivery) error {
		decision, err := t.step.Apply(ctx, nil, false, t.now())
		if err != nil || decision == nil {
			return err
		}
		if err := t.writer.Prepare(decision); err != nil {
			return err
		}
		if err := t.writer.Write(ctx, decision, func([]simhooks.Outgoing) {}); err != nil {
			decision.Batch = applied
			t.failed, t.cause = decision, err
			return err
		}
		return nil
	}
	r, err := simhooks.Recovery{Step: t.step, Found: found, LastCommit: last, Submissions: messageLog{c}, Now: t.now(), Save: save}.Run(ctx)
	if err != nil {
		return nil, false
	}
	if _, err := t.step.NameLost(ctx, r, messageLog{c}); err != nil {
		return nil, false
	}
	if !found.Empty() {
		t.w.tell("%s brings %d commands and %d workloads of the streams together with the ledger: %d queued again, %d removed, %d lost, %d had ended",
			t.m.name, len(found.Commands), len(found.LastEvents), len(r.Requeued), len(r.Removed), len(r.Lost), len(r.Ended))
	}
	return found.Ends, true
}

// named reports whether a dead letter names a workload, and whether it had ended.
func (n *network) named(id workload.ID) (named, final bool) {
	for _, d := range n.dead {
		if changed := changedIn(d); changed != nil && changed.ID == id {
			named, final = true, changed.Phase.Final()
		}
	}
	return named, final
}

// KnownMessages implements what simhooks.FindAhead asks of a ledger.
func (l *ledger) KnownMessages(_ context.Context, messages []simhooks.MessageRef) (known map[string]bool, err error) {
	known = map[string]bool{}
	if len(messages) == 0 {
		return known, nil
	}
	return known, l.w.call(postgresServer, "KnownMessages", func() error {
		there := map[string]bool{}
		for _, m := range l.outbox {
			there[m.EventID] = true
		}
		for _, h := range l.history {
			there[h.EventID] = true
		}
		for _, m := range messages {
			if there[m.EventID] {
				known[m.EventID] = true
			}
		}
		return nil
	})
}

// Since hands over what a stream has from a place on.
func (c *connection) Since(_ context.Context, name, filter string, from bus.From, each func(bus.Delivery) error) error {
	var found []bus.Delivery
	err := c.w.call(natsServer, "Since", func() error {
		s := c.w.net.streams[name]
		if s == nil {
			return bus.ErrNoStream
		}
		found = nil
		for _, m := range s.messages {
			if m.Sequence >= from.Sequence && !m.Stored.Before(from.Time) && strings.HasPrefix(m.Subject, strings.TrimRight(filter, ">*.")) {
				found = append(found, m)
			}
		}
		return nil
	})
	for _, m := range found {
		if err == nil {
			err = each(m)
		}
	}
	return err
}

// messageLog is NATS as queue-manager asks it for what was submitted.
type messageLog struct{ c *connection }

// Since implements the engine's SubmissionLog.
func (m messageLog) Since(ctx context.Context, from time.Time, each func(bus.Delivery) error) error {
	return m.c.Since(ctx, bus.KeptStream, event.KeptFilter(), bus.From{Time: from}, each)
}

// HasEvents implements the engine's SubmissionLog.
func (m messageLog) HasEvents(ctx context.Context, queue string, id workload.ID) (bool, error) {
	subject := event.EventsSubject(queue, id)
	present, err := m.c.Subjects(ctx, bus.EventsStream, subject)
	if errors.Is(err, bus.ErrNoStream) {
		return false, nil
	}
	return present[subject], err
}

// StoreDeadLetter implements the engine's DeadLetters.
func (m messageLog) StoreDeadLetter(_ context.Context, d bus.Delivery, _ string) error {
	return m.c.w.call(natsServer, "StoreDeadLetter", func() error {
		m.c.w.net.dead = append(m.c.w.net.dead, d)
		return nil
	})
}

// KeepUndelivered implements the engine's DeadLetters. The played NATS refuses no dead letter.
func (m messageLog) KeepUndelivered(context.Context, bus.Delivery, string) error {
	return errors.New("a dead letter was refused")
}

// restored hears that a submission is lost with a database restored to an older state, and
// has to be sent again.
func (s *submitter) restored(r *event.WorkloadRejected) bool {
	l := s.w.disk
	if !l.lapse.came || r.Reason.Kind != workload.ReasonRestored {
		return false
	}
	if _, known := l.record(r.Workload); !known && s.by[r.Workload] != nil {
		s.by[r.Workload].begin()
	}
	return true
}

// promise notes that an event reported a submission as queued: the ledger knows it from
// now on, or was restored to an older state since the event.
func (s *submitter) promise(id workload.ID) {
	if _, known := s.w.disk.record(id); !known && s.w.disk.lapse.came {
		s.w.disk.lapse.forgotten[id] = s.w.disk.lapse.losses
		return
	}
	s.w.check.promised[id] = true
}
