package relay

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// send publishes until NATS has all of them, in order, however long it takes. It
// returns an error when the term is over or Postgres does not answer.
//
// What has been published and is still in the outbox is never more than the first
// batch of it, so a relay that begins has all of that in its own first batch.
func (p *publisher) send(ctx context.Context, messages []store.Outgoing) error {
	for batch := range slices.Chunk(messages, batchLimit) {
		if err := p.sendBatch(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

// sendBatch is send of what one batch can hold.
func (p *publisher) sendBatch(ctx context.Context, batch []store.Outgoing) error {
	due := batch
	if p.lastOnly() {
		due = lastOfSubjects(batch)
	}
	for len(batch) > 0 {
		// The look at the epoch comes after the one at the stream's end (findEnd) and
		// before the message that has to follow that end: so nothing of a replaced
		// leader comes behind what its successor has published.
		if err := p.Store.CheckEpochAndAddManifests(ctx, p.Epoch, due); err != nil {
			return err
		}
		done, failed := p.publish(ctx, due)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if done > 0 {
			due = due[done:]
			n := before(batch, due)
			if err := p.removePublished(ctx, batch[:n]); err != nil {
				return err
			}
			batch = batch[n:]
		}
		if failed != nil {
			if err := p.afterFailure(ctx, failed, done > 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// removePublished takes published messages out of the outbox, or keeps them there until a watermark
// that covers them is stored: behind it, the next term takes what is in the stream and no
// longer in the outbox for messages that the ledger does not know.
func (p *publisher) removePublished(ctx context.Context, messages []store.Outgoing) error {
	if p.watermark.Created.IsZero() { // the stream's end was not found out yet
		p.keep(messages)
		return nil
	}
	seqs := make([]int64, len(messages))
	for i, m := range messages {
		seqs[i] = m.Seq
	}
	err := p.Store.Sent(ctx, p.Epoch, seqs, p.stream, p.watermark)
	switch {
	case store.Suspect(err):
		if err := p.saveWatermark(ctx); err != nil {
			return err
		}
		if !p.watermarkStored() {
			p.keep(messages)
			return nil
		}
		if err := p.removeApart(ctx, messages); err != nil {
			return err
		}
	case err != nil:
		return err
	default:
		p.saved, p.unmarked = p.watermark, false
	}
	p.advance(messages[len(messages)-1].Seq)
	return nil
}

// afterFailure does what there is to do before messages that could not be published are
// tried again; moved means that some of them were.
func (p *publisher) afterFailure(ctx context.Context, failed error, moved bool) error {
	if errors.Is(failed, bus.ErrOvertaken) {
		// The stream does not end where it was to end: it has lost messages; or it has
		// one of ours, whose answer was lost; or another process leads.
		stuck := p.uncertain && !moved
		p.uncertain = true
		err := p.findEnd(ctx, false)
		if ctx.Err() != nil || termOver(err) {
			return err
		}
		if err == nil && !stuck {
			return nil
		}
		failed = errors.Join(failed, err)
	}
	p.Logger.Warn("cannot publish from the outbox; retrying", zap.Error(failed), zap.String("stream", p.stream),
		zap.Duration("after", retryAfter))
	if err := p.Bus.EnsureStreams(ctx); err != nil {
		p.Logger.Warn("cannot restore streams", zap.Error(err))
	}
	return p.Pause(ctx, retryAfter)
}

// publish sends all and returns how many of them, from the first, are done with.
// The error wraps bus.ErrOvertaken when the stream does not end at the watermark.
func (p *publisher) publish(ctx context.Context, messages []store.Outgoing) (done int, err error) {
	limited, cancel := context.WithTimeout(ctx, ackTimeout)
	defer cancel()
	for done < len(messages) && err == nil {
		var n int
		n, err = p.publishPipelined(limited, messages[done:])
		done += n
	}
	var next store.Outgoing
	if done < len(messages) {
		next = messages[done]
	}
	if ctx.Err() == nil {
		p.noteTry(ctx, next, done, err)
	}
	return done, err
}

// publishPipelined sends messages without waiting in between, each to be stored right behind
// the one before it, and returns how many of them, from the first, are done with.
//
// A message that the stream has already takes no place there, and the server refuses the
// one that was to follow it. From then on the end of the stream is uncertain: every message
// of the next batch expects the same sequence, and the first fresh ack makes the end certain
// again. Those messages are of different subjects, because any of them may be the first.
//
// For example, the stream ends at 7, and A, which is in it already, B and C are sent. A
// expects 7 and is answered with its old sequence; B expects 8 and is refused. In the next
// batch B and C both expect 7, because either may be the first that the stream has not.
func (p *publisher) publishPipelined(ctx context.Context, messages []store.Outgoing) (done int, err error) {
	if p.uncertain {
		messages = messages[:differing(messages)]
	}
	published := make([]*bus.Published, 0, len(messages))
	end := bus.End{Sequence: p.watermark.Last}
	for _, m := range messages {
		pending, failed := p.publishAsync(ctx, m, end)
		if failed != nil {
			err = failed
			break
		}
		published = append(published, pending)
		if pending != nil && !p.uncertain {
			end = bus.End{Sequence: end.Sequence + 1, ID: p.idOf(m)}
		}
	}
	for i, pending := range published {
		if pending == nil { // nothing to wait for
			continue
		}
		sequence, failed := pending.Stored(ctx)
		if failed != nil {
			return i, failed
		}
		if sequence > p.watermark.Last+1 {
			return i, fmt.Errorf("message %q is stored as %d; want it directly after %d: %w", messages[i].EventID, sequence, p.watermark.Last, bus.ErrOvertaken)
		}
		fresh := sequence > p.watermark.Last
		p.stored(messages[i].EventID, sequence)
		if fresh == p.uncertain {
			p.uncertain = !fresh
			return i + 1, nil
		}
	}
	return len(published), err
}

// publishAsync sends one message, to be stored where the stream ends; nil when it is not to
// be sent at all.
func (p *publisher) publishAsync(ctx context.Context, m store.Outgoing, end bus.End) (*bus.Published, error) {
	if m.ManifestOf != "" {
		return nil, nil // its workload has ended, and a later command has that
	}
	pending, err := p.Bus.PublishNext(m.Subject, p.idOf(m), m.Message, m.TTL, end)
	if errors.Is(err, bus.ErrTooLarge) {
		return nil, p.moveToUndelivered(ctx, m, err)
	}
	if err != nil {
		return nil, err
	}
	return &pending, nil
}
