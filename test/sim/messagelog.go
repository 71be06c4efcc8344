package sim

import (
	"context"
	"errors"
	"strings"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/simhooks"
)

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
	return m.c.Since(ctx, bus.KeptStream, event.KeptFilter(), bus.From{Time: from}, func(d bus.Delivery) error {
		if m.c.w.Bug == BugUnasked && isRequest(d) {
			return nil
		}
		return each(d.Original())
	})
}

// LastEvent implements the engine's SubmissionLog.
func (m messageLog) LastEvent(ctx context.Context, queue string, id workload.ID) (*bus.Delivery, error) {
	last, err := m.c.LastMessage(ctx, bus.EventsStream, event.EventsSubject(queue, id))
	if errors.Is(err, bus.ErrNoStream) {
		return nil, nil
	}
	return last, err
}

// StoreDeadLetter implements the engine's DeadLetters.
func (m messageLog) StoreDeadLetter(_ context.Context, d bus.Delivery, _ string) error {
	w := m.c.w
	from := w.cur.m
	err := w.call(natsServer, "StoreDeadLetter", func() error {
		if !w.net.storesIn(bus.DeadStream) {
			return errFull
		}
		w.net.dead = append(w.net.dead, d)
		return nil
	})
	from.storage.Note(event.DeadSubject(d.Subject), err, w.now)
	return err
}

// KeepUndelivered implements the engine's DeadLetters. The played NATS refuses no dead letter.
func (m messageLog) KeepUndelivered(context.Context, bus.Delivery, string) error {
	return errors.New("a dead letter was refused")
}
