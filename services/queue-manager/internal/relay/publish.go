package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// send publishes until NATS has all of them, in order, however long it takes. It
// returns an error when the term is over or Postgres does not answer.
//
// What has been published and is still in the outbox is never more than the first
// batch of it, so a relay that begins has all of that in its own first batch.
func (l *lane) send(ctx context.Context, messages []store.Outgoing) error {
	for batch := range slices.Chunk(messages, batchLimit) {
		if err := l.sendBatch(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

// sendBatch is send of what one batch can hold.
func (l *lane) sendBatch(ctx context.Context, batch []store.Outgoing) error {
	due := batch
	if l.lastOnly() {
		due = lastOfSubjects(batch)
	}
	for len(batch) > 0 {
		// The look at the epoch comes after the one at the stream's end (resync) and
		// before the message that has to follow that end: so nothing of a replaced
		// leader comes behind what its successor has published.
		if err := l.Ledger.Complete(ctx, l.Epoch, due); err != nil {
			return err
		}
		done, failed := l.publish(ctx, due)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if done > 0 {
			due = due[done:]
			sent := before(batch, due)
			if err := l.sent(ctx, batch[:sent]); err != nil {
				return err
			}
			batch = batch[sent:]
		}
		if failed != nil {
			if err := l.afterFailure(ctx, failed, done > 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// lastOfSubjects returns the last message of each subject, in order. The stream has
// no room for another, and one that comes once more, because nobody heard that it
// was stored, must not come behind one that followed it.
func lastOfSubjects(messages []store.Outgoing) []store.Outgoing {
	last := make(map[string]int64, len(messages))
	for _, m := range messages {
		last[m.Subject] = m.Seq
	}
	kept := make([]store.Outgoing, 0, len(last))
	for _, m := range messages {
		if last[m.Subject] == m.Seq {
			kept = append(kept, m)
		}
	}
	return kept
}

// before returns how many messages of a batch come before those that are still due.
func before(batch, due []store.Outgoing) int {
	if len(due) == 0 {
		return len(batch)
	}
	return slices.IndexFunc(batch, func(m store.Outgoing) bool { return m.Seq == due[0].Seq })
}

// sent takes messages out of the outbox.
func (l *lane) sent(ctx context.Context, messages []store.Outgoing) error {
	seqs := make([]int64, len(messages))
	for i, m := range messages {
		seqs[i] = m.Seq
	}
	if err := l.Ledger.Sent(ctx, l.Epoch, seqs, l.stream, l.mark); err != nil {
		return err
	}
	l.saved, l.last = l.mark, messages[len(messages)-1].Seq
	return nil
}

// afterFailure does what there is to do before messages that could not be published are
// tried again; moved says that some of them were.
func (l *lane) afterFailure(ctx context.Context, failed error, moved bool) error {
	if errors.Is(failed, bus.ErrOvertaken) {
		// The stream does not end where it was to end: it has lost messages; or it has
		// one of ours, of which we did not hear; or somebody else leads.
		stuck := l.doubtful && !moved
		l.doubtful = true
		err := l.resync(ctx, false)
		if ctx.Err() != nil || errors.Is(err, store.ErrFenced) {
			return err
		}
		if err == nil && !stuck {
			return nil
		}
		failed = errors.Join(failed, err)
	}
	l.Logger.Warn("cannot publish from the outbox; trying again", zap.Error(failed), zap.String("stream", l.stream),
		zap.Duration("after", retryAfter))
	if err := l.Bus.EnsureStreams(ctx); err != nil {
		l.Logger.Warn("cannot restore streams", zap.Error(err))
	}
	l.Pause(ctx, retryAfter)
	return nil
}

// publish sends all and returns how many of them, from the first, are done with.
// The error wraps bus.ErrOvertaken when the stream does not end where the mark says.
func (l *lane) publish(ctx context.Context, messages []store.Outgoing) (done int, err error) {
	ctx, cancel := context.WithTimeout(ctx, ackTimeout)
	defer cancel()
	for done < len(messages) && err == nil {
		var n int
		n, err = l.volley(ctx, messages[done:])
		done += n
	}
	return done, err
}

// volley sends messages without waiting in between, each to be stored right behind
// the one before it, and returns how many of them, from the first, are done with.
//
// One that the stream has already takes no place there, and the server refuses what
// was to follow it: that is for the next volley, of which more may be there already.
// So all of that one are to follow what is last now, and the first that is new ends
// the doubt. They are of different subjects, because which of them will be the first
// nobody knows.
func (l *lane) volley(ctx context.Context, messages []store.Outgoing) (done int, err error) {
	if l.doubtful {
		messages = messages[:differing(messages)]
	}
	published := make([]*bus.Published, 0, len(messages))
	end := bus.End{Sequence: l.mark.Last}
	for _, m := range messages {
		p, failed := l.start(ctx, m, end)
		if failed != nil {
			err = failed
			break
		}
		published = append(published, p)
		if p != nil && !l.doubtful {
			end = bus.End{Sequence: end.Sequence + 1, ID: m.EventID}
		}
	}
	for i, p := range published {
		if p == nil { // nothing to wait for
			continue
		}
		sequence, failed := p.Stored(ctx)
		if failed != nil {
			return i, failed
		}
		fresh := sequence > l.mark.Last
		l.mark.Last = max(l.mark.Last, sequence)
		if fresh == l.doubtful {
			l.doubtful = !fresh
			return i + 1, nil
		}
	}
	return len(published), err
}

// differing returns how many messages, from the first, have different subjects.
func differing(messages []store.Outgoing) int {
	seen := make(map[string]bool, len(messages))
	for i, m := range messages {
		if seen[m.Subject] {
			return i
		}
		seen[m.Subject] = true
	}
	return len(messages)
}

// start sends one message, to be stored where the stream ends; nil when it is not to
// be sent at all.
func (l *lane) start(ctx context.Context, m store.Outgoing, end bus.End) (*bus.Published, error) {
	if m.ManifestOf != "" {
		return nil, nil // its workload has ended, and a later command says so
	}
	p, err := l.Bus.PublishNext(m.Subject, m.EventID, m.Message, m.TTL, end)
	if errors.Is(err, bus.ErrTooLarge) {
		return nil, l.setAside(ctx, m, err)
	}
	if err != nil {
		return nil, err
	}
	return &p, nil
}

// setAside gets a message that is too large for the server out of the way.
func (l *lane) setAside(ctx context.Context, m store.Outgoing, cause error) error {
	l.Logger.Error("message set aside: it cannot be published", zap.String("id", m.EventID), zap.Error(cause))
	if err := l.Ledger.SetAside(ctx, l.Epoch, m, cause.Error()); err != nil {
		return err
	}
	if command, err := commandIn(m.Message); err == nil {
		l.Undeliverable(ctx, Undeliverable{Workload: command.Workload, Reason: cause.Error()})
	}
	return nil
}

func commandIn(message []byte) (*event.GangDesired, error) {
	envelope, err := event.Parse(message)
	if err != nil {
		return nil, err
	}
	payload, err := event.Decode(envelope)
	if err != nil {
		return nil, err
	}
	command, ok := payload.(*event.GangDesired)
	if !ok {
		return nil, fmt.Errorf("event %q is no command but %s", envelope.ID, envelope.Type)
	}
	return command, nil
}
