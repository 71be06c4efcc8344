package engine

import (
	"context"
	"errors"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// SubmissionLog is what NATS still has of what was submitted, and of the events about it.
type SubmissionLog interface {
	// Since hands over the submissions and requests from a moment on, in order, with their
	// places in the stream from which they were taken in.
	// The error wraps bus.ErrNoStream when none are kept.
	Since(ctx context.Context, from time.Time, each func(bus.Delivery) error) error
	// LastEvent returns the last event about a workload; nil for none.
	LastEvent(ctx context.Context, queue string, id workload.ID) (*bus.Delivery, error)
}

// messageLog is the streams of NATS as SubmissionLog and DeadLetters; the store keeps the
// dead letters that NATS refuses.
type messageLog struct {
	bus   *bus.Bus
	store *store.Store
	epoch int64
}

func (l *leader) messageLog() messageLog { return messageLog{l.Bus, l.Store, l.epoch} }

// Since implements SubmissionLog.
func (m messageLog) Since(ctx context.Context, from time.Time, each func(bus.Delivery) error) error {
	return m.bus.Since(ctx, bus.KeptStream, event.KeptFilter(), bus.From{Time: from}, func(d bus.Delivery) error { return each(d.Original()) })
}

// LastEvent implements SubmissionLog.
func (m messageLog) LastEvent(ctx context.Context, queue string, id workload.ID) (*bus.Delivery, error) {
	last, err := m.bus.LastMessage(ctx, bus.EventsStream, event.EventsSubject(queue, id))
	if errors.Is(err, bus.ErrNoStream) {
		return nil, nil
	}
	return last, err
}

// Answers reports whether an event answers a submission: one may also say that a request
// waits for the submission.
func Answers(d bus.Delivery) bool {
	_, payload, _ := d.Event() // one of a later version answers
	_, waits := payload.(*event.RequestWaits)
	return !waits
}

// gaveUp reports whether an event has told the submitter of an earlier message that the workload is
// not there: it cannot be stored, or was lost with an older database.
func gaveUp(d bus.Delivery, submitted time.Time) bool {
	_, payload, _ := d.Event()
	rejected, is := payload.(*event.WorkloadRejected)
	return is && d.Stored.After(submitted) && (rejected.Reason.Kind == workload.ReasonNotStorable || rejected.Reason.Kind == workload.ReasonRestored)
}

// StoreDeadLetter implements DeadLetters.
func (m messageLog) StoreDeadLetter(ctx context.Context, d bus.Delivery, reason string) error {
	return m.bus.StoreDeadLetter(ctx, d, reason)
}

// KeepUndelivered implements DeadLetters.
func (m messageLog) KeepUndelivered(ctx context.Context, d bus.Delivery, reason string) error {
	return m.store.KeepUndelivered(ctx, m.epoch, store.Outgoing{EventID: bus.DeadID(d), Subject: event.DeadSubject(d.Subject), Message: d.Data}, reason)
}
