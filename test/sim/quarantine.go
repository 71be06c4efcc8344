package sim

import (
	"context"
	"fmt"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/state"
)

// storeQuarantine puts what was set aside in quarantine.
func (l *ledger) storeQuarantine(epoch int64, quarantined []state.Quarantined) error {
	return l.w.call(postgresServer, "Quarantine", func() error {
		err := l.fence(epoch)
		l.real.kept(epoch, quarantined, err)
		if err != nil {
			return err
		}
		for _, a := range quarantined {
			l.quarantine[a.Workload] = a
		}
		if l.mended {
			l.w.after(releaseAgain, l.release)
		}
		return nil
	})
}

// quarantined reads what is in quarantine.
func (l *ledger) quarantined() (quarantined []state.Quarantined, err error) {
	return quarantined, l.w.call(postgresServer, "Quarantined", func() error {
		quarantined = nil
		for _, each := range l.w.submits.all {
			if a, there := l.quarantine[each.id]; there {
				quarantined = append(quarantined, a)
			}
		}
		return nil
	})
}

// beginQuarantine begins a term with what is set aside, as the engine does.
func (t *term) beginQuarantine() bool {
	quarantined, err := t.w.disk.quarantined()
	if err != nil {
		return false
	}
	t.m.memory.Sync(quarantined, t.now(), t.now())
	t.m.memory.ApplyTo(t.step, t.now())
	t.storeQuarantine(t.m.memory.Unstored(t.step.State))
	for _, a := range t.m.memory.Unannounced(t.step.State) {
		if record, live := t.step.State.Record(a.Workload); live {
			id := fmt.Sprintf("queue-manager/aside/%s/%d/%d", a.Workload, t.epoch, a.Tries)
			_ = t.publish(context.Background(), event.EventsSubject(record.Queue, record.ID), id, &event.WorkloadChanged{Record: record}) // there may be no event
		}
	}
	return true
}

// storeQuarantine writes what is set aside, as the engine does: what cannot be written only
// this process knows, until it leads the next time.
func (t *term) storeQuarantine(quarantined []state.Quarantined) {
	_ = t.m.memory.Store(quarantined, func(quarantined []state.Quarantined) error { return t.w.disk.storeQuarantine(t.epoch, quarantined) })
}

// checkReleased ends the term when something was released, or is to be tried again, as the engine
// does.
func (t *term) checkReleased() (over bool) {
	if t.m.memory.Due(t.clock, t.now()) {
		return true
	}
	if !t.m.memory.InQuarantine() || t.w.now.Sub(t.looked) < 2*time.Second {
		return false
	}
	t.looked = t.w.now
	quarantined, err := t.w.disk.quarantined()
	return err == nil && len(t.m.memory.Sync(quarantined, t.clock, t.now())) > 0
}

// diagnose deals with a commit that failed, as the engine does; what it returns tells
// whether something was found to blame.
func (t *term) diagnose() (blamed bool) {
	if t.failed == nil || t.w.Bug == BugEveryTerm {
		return false
	}
	diagnosis, err := t.writer.Diagnose(context.Background(), t.failed, t.cause, t.m.memory, t.now())
	if err != nil {
		return false
	}
	t.m.memory.Remember(diagnosis)
	for _, r := range diagnosis.Rejected {
		t.step.Reject(context.Background(), r, t.m.memory, func(id string, e *event.WorkloadRejected) error {
			return t.publish(context.Background(), event.EventsSubject(e.Queue, e.Workload), id, e)
		})
	}
	t.storeQuarantine(diagnosis.Quarantined)
	t.failed.Batch = diagnosis.Others(t.failed.Batch) // the others are given back with the term
	return !diagnosis.Empty()
}

// publish puts an event on the stream, beside the outbox.
func (t *term) publish(ctx context.Context, subject, id string, payload event.Payload) error {
	envelope, err := event.New(id, event.QueueManagerSource, t.now(), payload)
	if err != nil {
		return err
	}
	encoded, err := envelope.Encode()
	if err != nil {
		return err
	}
	published, err := (&connection{w: t.w}).PublishEncoded(subject, id, encoded, 0)
	if err != nil {
		return err
	}
	return published.Wait(ctx)
}
