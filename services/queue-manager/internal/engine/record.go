package engine

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/service/version"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/pkg/state/decisionlog"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// unwritten bounds what is noted without a commit to go with, in bytes.
const unwritten = 256 << 10

// do does something to the state that is no message, and notes it.
func (l *leader) do(in decisionlog.Input) {
	in.At = l.clock.now()
	l.step.Do(in)
}

// Do does something to the state that is no message, and notes it.
func (s *Step) Do(in decisionlog.Input) {
	s.decisions.Note(in)
	if err := decisionlog.Apply(s.State, in); err != nil {
		panic("an input of our own cannot be applied: " + err.Error())
	}
}

// applyMessage has the state take a message in, and notes it. A message that the state
// cannot take ends the term, because the state may be half changed, and is remembered.
func (s *Step) applyMessage(m received, known *state.Known, at time.Time) (live bool, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			if s.poison == nil {
				s.poison = poison{}
			}
			s.poison.add(m.Delivery, fmt.Sprintf("taking it in fails: %v", cause))
			s.Logger.Error("cannot apply a message to the state", zap.String("subject", m.Subject), zap.Uint64("sequence", m.Sequence),
				zap.Any("cause", cause), zap.Stack("stack"))
			err = fmt.Errorf("message %d on %s cannot be applied: %v", m.Sequence, m.Subject, cause)
		}
	}()
	in := decisionlog.Input{Kind: decisionlog.Event, At: at, Message: m.Data, Known: known, Asked: askedAt(m)}
	if again := s.readTo.again(m.Delivery); again || s.State.CatchingUp() {
		in.Stored = m.Stored.UTC()
	}
	s.decisions.Note(in)
	return decisionlog.ApplyMessage(s.State, m.envelope, m.payload, in), nil
}

// askedAt is the place of a request in its stream.
func askedAt(m received) workload.AskedAt {
	if _, is := m.payload.(event.Request); !is || m.Sequence == 0 {
		return workload.AskedAt{}
	}
	return workload.AskedAt{Sequence: m.Sequence, Stored: m.Stored.UTC()}
}

// record returns what was noted, to be kept with the changes; nothing while there
// is little of it and nothing has changed.
func (s *Step) record(changes state.Changes, at time.Time) store.Record {
	if changes.Empty() && s.decisions.Size() < unwritten {
		return store.Record{}
	}
	number, inputs := s.decisions.Flush()
	if s.Unrecorded {
		return store.Record{}
	}
	return store.Record{Number: number, Version: s.State.Version(), At: at, Inputs: inputs}
}

// Begin notes what the term begins with: a state that has yet to catch up, and that
// waits so long for answers before it acts on what was not observed.
func (s *Step) Begin(epoch int64, limits state.Limits, askFor time.Duration, at time.Time) {
	term := decisionlog.TermOf(s.State, epoch, limits, version.String())
	term.AskFor = askFor
	s.State.SetAnswerTimeout(askFor)
	s.decisions.Note(decisionlog.Input{Kind: decisionlog.Begin, At: at, Term: &term})
	s.State.CatchUp()
}

// clock is the time of a term. It begins as the machine's and goes on by itself,
// so that a jump of the machine's clock ages nothing; and it is in UTC and a plain
// value, so that what is recorded is what was used.
type clock struct{ began time.Time }

func (c clock) now() time.Time { return c.began.Round(0).UTC().Add(time.Since(c.began)) }

// beginCheckpoint writes a checkpoint for replays when no stored one will do. It must be
// called before the first commit; the returned function does the long part, and has to
// be called. What fails is tried again with the next term; decisions do not wait for
// it.
func (l *leader) beginCheckpoint(ctx context.Context) (keep func(), err error) {
	needed, err := l.Store.NeedsCheckpoint(ctx, l.state.Version(), l.LongestTerm)
	if err != nil || !needed {
		return func() {}, err
	}
	snapshot, err := l.Store.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	at := l.state.Version()
	return func() {
		defer snapshot.Close()
		began := time.Now()
		if err := snapshot.WriteCheckpoint(ctx, l.epoch, at); err != nil {
			if ctx.Err() == nil {
				l.Logger.Warn("cannot store a checkpoint; a replay of this term needs that of the last one", zap.Error(err))
			}
			return
		}
		l.Logger.Info("checkpoint stored", zap.Int64("version", at), zap.Duration("after", time.Since(began)))
	}, nil
}
