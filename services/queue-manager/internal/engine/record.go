package engine

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/book"
	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/journal"
	"muster.dev/muster/pkg/version"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// clock is the time of a term. It begins as the machine's and goes on by itself,
// so that a jump of the machine's clock ages nothing; and it is in UTC and a plain
// value, so that what is recorded is what was used.
type clock struct{ began time.Time }

func (c clock) now() time.Time { return c.began.Round(0).UTC().Add(time.Since(c.began)) }

// unwritten bounds what is noted without a commit to go with, in bytes.
const unwritten = 256 << 10

// do does something to the book that is no message, and notes it.
func (e *engine) do(in journal.Input) {
	in.At = e.clock.now()
	e.desk.Do(in)
}

// Do does something to the book that is no message, and notes it.
func (desk *Desk) Do(in journal.Input) {
	desk.journal.Note(in)
	if err := journal.Apply(desk.Book, in); err != nil {
		panic("an input of our own cannot be applied: " + err.Error())
	}
}

// take has the book take a message in, and notes it. A message that the book
// cannot take ends the term, because the book may be half changed, and is remembered.
func (desk *Desk) take(d bus.Delivery, envelope event.Envelope, payload event.Payload, known *book.Known, at time.Time) (live bool, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			if desk.poison == nil {
				desk.poison = poison{}
			}
			desk.poison.add(d, fmt.Sprintf("taking it in fails: %v", cause))
			desk.Logger.Error("a message cannot be taken in", zap.String("subject", d.Subject), zap.Uint64("sequence", d.Sequence),
				zap.Any("cause", cause), zap.Stack("stack"))
			err = fmt.Errorf("message %d on %s cannot be taken in: %v", d.Sequence, d.Subject, cause)
		}
	}()
	desk.journal.Note(journal.Input{Kind: journal.Event, At: at, Message: d.Data, Known: known})
	return journal.Take(desk.Book, envelope, payload, known, at), nil
}

// record returns what was noted, to be kept with the changes; nothing while there
// is little of it and nothing has changed.
func (desk *Desk) record(changes book.Changes, at time.Time) store.Record {
	if changes.Empty() && desk.journal.Size() < unwritten {
		return store.Record{}
	}
	number, inputs := desk.journal.Take()
	if desk.Unrecorded {
		return store.Record{}
	}
	return store.Record{Number: number, Version: desk.Book.Version(), At: at, Inputs: inputs}
}

// Begin notes what the term begins with: a book that has yet to catch up, and that
// waits so long for answers before it acts on what was not observed.
func (desk *Desk) Begin(epoch int64, limits book.Limits, askFor time.Duration, at time.Time) {
	term := journal.Of(desk.Book, epoch, limits, version.String())
	term.AskFor = askFor
	desk.Book.SetAskFor(askFor)
	desk.journal.Note(journal.Input{Kind: journal.Begin, At: at, Term: &term})
	desk.Book.CatchUp()
}

// keepBase keeps a base for replays when there is none that serves. It must be
// called before the first commit; the returned function does the long part, and has to
// be called. What fails is tried again with the next term; decisions do not wait for
// it.
func (e *engine) keepBase(ctx context.Context, epoch int64) (keep func(), err error) {
	needed, err := e.Store.NeedsBase(ctx, e.book.Version(), e.LongestTerm)
	if err != nil || !needed {
		return func() {}, err
	}
	snapshot, err := e.Store.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	at := e.book.Version()
	return func() {
		defer snapshot.Close()
		began := time.Now()
		if err := snapshot.KeepBase(ctx, epoch, at); err != nil {
			if ctx.Err() == nil {
				e.Logger.Warn("decisions of this term cannot be replayed, unless those of the last one can", zap.Error(err))
			}
			return
		}
		e.Logger.Info("base of decisions kept", zap.Int64("version", at), zap.Duration("after", time.Since(began)))
	}, nil
}
