package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/simhooks"
)

// Postgres is restored to an older state: an asynchronous standby takes over, or a backup is
// restored, while services, NATS and the API server go on.

// begin has a submitter start again: it was never heard, or has to submit again.
func (s *submission) begin() {
	s.announced, s.heard, s.ended, s.stored, s.running, s.final = false, false, false, -1, time.Time{}, ""
	s.excused = true // its attempts are counted from the first one again
	s.excuseEffects()
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
		w.narrate("%s takes epoch %d, after %d of the streams", t.m.name, t.epoch, known)
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
	found, err := simhooks.FindAhead(ctx, l, c, t.w.unrecovered)
	if err != nil {
		return nil, false
	}
	if t.w.Bug == BugUnasked {
		l.withoutRequests(found)
	}
	for i := range found.LastEvents {
		found.LastEvents[i].Holding = found.LastEvents[i].Holding && t.w.Bug != BugUnawaited
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
	distrust := func() error { return simhooks.DistrustCommands(ctx, relayLedger{t.w.disk}, t.epoch) }
	r, err := simhooks.Recovery{Step: t.step, Found: found, LastCommit: last, Submissions: messageLog{c}, Now: t.now(), Save: save, Distrust: distrust}.Run(ctx)
	if err != nil {
		return nil, false
	}
	t.w.unrecovered = simhooks.Unrecovered{From: found.From, Workloads: r.Withheld}
	if _, err := t.step.NameLost(ctx, r, messageLog{c}); err != nil {
		return nil, false
	}
	if !found.Empty() {
		t.w.narrate("%s brings %d commands and %d workloads of the streams together with the ledger: %d queued again, %d removed, %d lost, %d had ended",
			t.m.name, len(found.Commands), len(found.LastEvents), len(r.Requeued), len(r.Removed), len(r.Lost), len(r.Ended))
	}
	return found.Ends, true
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
