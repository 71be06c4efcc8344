package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// compare finds out whether the stream has lost something, and has it published
// anew. When NATS does not answer it is tried again.
func (l *lane) compare(ctx context.Context) error { return l.orLater(ctx, l.resync(ctx, true)) }

// orLater lets a comparison that failed be done once more later, unless the term is
// over.
func (l *lane) orLater(ctx context.Context, failed error) error {
	if failed == nil || ctx.Err() != nil || errors.Is(failed, store.ErrFenced) {
		return errors.Join(failed, ctx.Err())
	}
	l.Logger.Warn("cannot compare a stream with the ledger; trying again", zap.String("stream", l.stream), zap.Error(failed))
	l.Later(recheckSoon, l.check)
	return nil
}

// resync finds out where the stream ends, so that what is published next can follow.
// If the stream has lost something, that is published anew. What commands it lacks
// is told then, and if the comparison is to be thorough.
func (l *lane) resync(ctx context.Context, thorough bool) error {
	lost, created, err := l.lost(ctx)
	if err != nil {
		return err
	}
	if lost {
		// Before anything is told anew: what has been told makes the stream as long
		// again as it was, and who comes after this one is to find it lost all the same.
		if err := l.saveMark(ctx); err != nil {
			return err
		}
	}
	if lost || thorough {
		if err := l.restore(ctx, lost); err != nil {
			return err
		}
	}
	l.mark.Created = created
	return l.saveMark(ctx)
}

// lost reports whether the stream is not the one that it was, or is shorter, and
// when it was made. Until everything has been published anew the mark of a stream
// that has lost something is of one that never was, so that whoever compares next,
// after a failure or in the next term, finds it lost, too.
func (l *lane) lost(ctx context.Context) (lost bool, created time.Time, err error) {
	state, err := l.Bus.State(ctx, l.stream)
	if errors.Is(err, bus.ErrNoStream) {
		if err := l.Bus.EnsureStreams(ctx); err != nil {
			return false, created, err
		}
		state, err = l.Bus.State(ctx, l.stream)
	}
	if err != nil {
		return false, created, err
	}
	known := l.mark
	created = state.Created.UTC().Truncate(time.Microsecond) // as Postgres keeps it
	lost = !known.Created.IsZero() && (!created.Equal(known.Created) || state.Last < known.Last)
	if lost {
		l.Logger.Warn("stream has lost messages: publishing them anew", zap.String("stream", l.stream),
			zap.Time("made", state.Created), zap.Time("was made", known.Created),
			zap.Uint64("last", state.Last), zap.Uint64("had", known.Last))
	}
	l.mark = store.Mark{Created: created, Last: state.Last}
	if lost {
		l.mark.Created = neverMade()
	}
	return lost, created, nil
}

// restore publishes what is missing. Commands are last values: the ledger's
// leader says them again, through the outbox, so that their order holds.
func (l *lane) restore(ctx context.Context, lost bool) error {
	if l.lastOnly() {
		present, err := l.Bus.Subjects(ctx, l.stream, commandPrefix+">")
		if err != nil {
			return err
		}
		l.Missing(ctx, Missing{All: lost, Present: present})
		return nil
	}
	if !lost {
		return nil
	}
	return l.retell(ctx)
}

// retell publishes the events of the kept history once more, under their own
// ids, in order and before anything newer.
func (l *lane) retell(ctx context.Context) error {
	var after int64
	for {
		told, last, err := l.Ledger.ToldSince(ctx, after, bus.EventsKept, batchLimit)
		if err != nil {
			return err
		}
		messages := make([]store.Outgoing, 0, len(told))
		for _, t := range told {
			encoded, err := event.Marshal(t.EventID, "muster/queue-manager", t.At, "", &event.WorkloadChanged{Record: t.Record})
			if err != nil {
				return err
			}
			messages = append(messages, store.Outgoing{
				EventID: t.EventID, Subject: bus.EventsSubject(t.Record.Queue, t.Record.ID), Message: encoded,
			})
		}
		if err := l.Ledger.Complete(ctx, l.Epoch, messages); err != nil {
			return err
		}
		if _, err := l.publish(ctx, messages); err != nil {
			return fmt.Errorf("publish history anew: %w", err)
		}
		if last == 0 || last == after {
			return nil
		}
		after = last
	}
}
