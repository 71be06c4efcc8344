package relay

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// compare finds out whether the stream has lost something, and has it republished.
// When NATS does not answer it is tried again.
func (p *publisher) compare(ctx context.Context) error { return p.orLater(ctx, p.findEnd(ctx, true)) }

// termOver reports whether an error means that the term is over: another one leads, or
// the database was restored to an older state.
func termOver(err error) bool {
	return errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrCommitMissing)
}

// orLater lets a comparison that failed be done once more later, unless the term is
// over.
func (p *publisher) orLater(ctx context.Context, failed error) error {
	if failed == nil || ctx.Err() != nil || termOver(failed) {
		return errors.Join(failed, ctx.Err())
	}
	p.Logger.Warn("cannot compare a stream with the ledger; retrying", zap.String("stream", p.stream), zap.Error(failed))
	p.Later(recheckSoon, p.check)
	return nil
}

// findEnd finds out where the stream ends, so that what is published next can follow.
// If the stream has lost something, that is republished. Then, and when the comparison is to
// be thorough, CommandsFound is called with the commands that the stream has.
func (p *publisher) findEnd(ctx context.Context, thorough bool) error {
	state, err := p.end(ctx)
	if err != nil {
		return err
	}
	end := endOf(state)
	if err := p.lookAhead(ctx, end); err != nil {
		return err
	}
	emptied, err := p.emptied(ctx, state)
	if err != nil {
		return err
	}
	lost := p.follow(end, emptied)
	if emptied { // the server takes the last events for duplicates
		p.again = strconv.FormatUint(state.First, 36)
		defer func() { p.again = "" }()
	}
	if lost {
		// Before anything is republished: that makes the stream as long
		// again as it was, and who comes after this one is to find it lost all the same.
		if err := p.saveWatermark(ctx); err != nil {
			return err
		}
	}
	if lost || thorough {
		if err := p.restore(ctx, lost); err != nil {
			return err
		}
	}
	p.watermark.Created, p.gone, p.first = end.Created, false, 0
	if !p.lastOnly() {
		p.looked = state
	}
	return p.saveWatermark(ctx)
}

// end asks what the stream has, which is made if there is none.
func (p *publisher) end(ctx context.Context) (state bus.StreamState, err error) {
	state, err = p.Bus.State(ctx, p.stream)
	if errors.Is(err, bus.ErrNoStream) {
		if err := p.Bus.EnsureStreams(ctx); err != nil {
			return state, err
		}
		state, err = p.Bus.State(ctx, p.stream)
	}
	return state, err
}

// lookAhead compares with the ledger what has come into the stream since it was compared
// last. What comes then is in the outbox, or of a later leader: then the error wraps
// store.ErrFenced. Otherwise it was sent by a replaced leader, in time that Postgres has
// lost, and arrived when this term had looked at the streams: the error wraps
// store.ErrCommitMissing. The watermark stays before the message, so that the next term finds it.
//
// A stream that is not the one that was compared, or is shorter, has lost what it had.
func (p *publisher) lookAhead(ctx context.Context, end store.Watermark) error {
	if p.own {
		return nil
	}
	if end.Created.Equal(p.compared.Created) && end.Last > p.compared.Last {
		var ids []string
		over := store.ErrCommitMissing
		all := func(bus.Delivery) bool { return true }
		_, err := unknown(ctx, p.Store, p.Bus, p.stream, p.compared.Last, all, func(d bus.Delivery, _ event.Payload) {
			ids = append(ids, d.MessageID())
			if epoch, _ := epochOf(d.MessageID()); epoch > p.Epoch {
				over = store.ErrFenced
			}
		})
		if err != nil {
			return err
		}
		if len(ids) > 0 {
			return fmt.Errorf("stream %s has messages that the ledger lacks, first %q (%d in all): %w", p.stream, ids[0], len(ids), over)
		}
	}
	p.compared = end
	return nil
}

// stored notes that the stream has a message. When it is one of this term, no message of
// an earlier leader is taken any more: each of them is to follow one that the stream had
// before this term looked at it.
func (p *publisher) stored(id string, sequence uint64) {
	p.watermark.Last = max(p.watermark.Last, sequence)
	p.compared.Last = max(p.compared.Last, p.watermark.Last)
	if p.first == 0 && !p.lastOnly() {
		p.first = sequence
	}
	if epoch, ours := epochOf(id); ours && epoch == p.Epoch {
		p.own = true
	}
}

// follow notes where the stream ends. It reports whether the stream is not the one that
// it was, is shorter, or was emptied. Until everything has been republished the watermark of a
// stream that has lost something is of one that never was, so that the next comparison,
// after a failure or in the next term, finds it lost, too.
func (p *publisher) follow(end store.Watermark, emptied bool) (lost bool) {
	known := p.watermark
	lost = emptied || !known.Created.IsZero() && (!end.Created.Equal(known.Created) || end.Last < known.Last)
	p.watermark = end
	if lost {
		p.Logger.Warn("stream has lost messages; republishing them", zap.String("stream", p.stream),
			zap.Time("made", end.Created), zap.Time("was made", known.Created),
			zap.Uint64("last", end.Last), zap.Uint64("had", known.Last), zap.Bool("emptied", emptied))
		p.watermark.Created = neverMade()
	}
	if emptied {
		p.watermark.Created = emptyAgain()
	}
	return lost
}

// restore publishes what is missing. Commands are last values: the ledger's
// leader sends them again, through the outbox, so that their order holds.
func (p *publisher) restore(ctx context.Context, lost bool) error {
	if p.lastOnly() {
		present, err := p.Bus.Subjects(ctx, p.stream, "muster.>")
		if err != nil {
			return err
		}
		found, err := p.distrusted(ctx, CommandsFound{Present: p.withoutStale(present)}, lost)
		if err == nil {
			p.CommandsFound(ctx, found)
		}
		return err
	}
	if !lost {
		return nil
	}
	return p.republishHistory(ctx)
}

// republishHistory publishes the events of the kept history once more, under their own
// ids, in order and before anything newer.
func (p *publisher) republishHistory(ctx context.Context) error {
	var after int64
	for {
		steps, last, err := p.Store.HistorySince(ctx, after, bus.EventsKept, batchLimit)
		if err != nil {
			return err
		}
		messages := make([]store.Outgoing, 0, len(steps))
		for _, step := range steps {
			encoded, err := event.Marshal(step.EventID, event.QueueManagerSource, step.At, "", &event.WorkloadChanged{Record: step.Record})
			if err != nil {
				return err
			}
			messages = append(messages, store.Outgoing{
				EventID: step.EventID, Subject: event.EventsSubject(step.Record.Queue, step.Record.ID), Message: encoded,
			})
		}
		if err := p.Store.CheckEpochAndAddManifests(ctx, p.Epoch, messages); err != nil {
			return err
		}
		if _, err := p.publish(ctx, messages); err != nil {
			return fmt.Errorf("republish history: %w", err)
		}
		if last == 0 || last == after {
			return nil
		}
		after = last
	}
}
