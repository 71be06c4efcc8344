package relay

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/services/queue-manager/internal/store"
)

const (
	// stalledMost is how long nothing is stored until another server is to lead the stream,
	// and the pause until the next try when NATS does not do that.
	stalledMost = 30 * time.Second
	// inProcessMost is how long NATS may refuse an id as one in process. A message is stored
	// within milliseconds.
	inProcessMost = 5 * time.Second
)

// stall is what a publisher notes while the stream stores nothing. After servers have lost
// power, or their leader changes often, two things end by themselves only after the two minutes
// in which NATS recognises duplicates, or not at all:
//
//   - A server refuses an id, because it remembers a message that it never stored. Such a
//     message is published under another id.
//   - A leader has accepted messages that the other servers do not confirm, and counts them as
//     the end of the stream. Another leader begins with what is stored.
//
// Neither stores a message twice, as long as the stream ends where it is known to end: a leader
// that still has the first message in process counts it, and refuses the second as one that
// does not follow it. When that happens the message gets its own id again.
type stall struct {
	since   time.Time // the first failure
	tried   time.Time // when another server was last to lead the stream
	changed bool      // another server leads it
	// refused is the id that is in process, and first when it was refused first.
	refused string
	first   time.Time
	// renamed is the id of a message that is published under another one.
	renamed string
}

// noteTry notes how a try to publish ended: done of the messages are done with, and next is
// the first of the others. It mends what it can.
func (p *publisher) noteTry(ctx context.Context, next store.Outgoing, done int, failed error) {
	now := p.Now()
	if !errors.Is(failed, bus.ErrInProcess) || p.stall.refused != next.EventID {
		p.stall.refused, p.stall.first, p.stall.renamed = "", time.Time{}, ""
	}
	if done > 0 || failed == nil || p.back.Swap(false) {
		p.stall.since, p.stall.tried, p.stall.changed = time.Time{}, time.Time{}, false
	}
	if failed == nil {
		return
	}
	if p.stall.since.IsZero() {
		p.stall.since = now
	}
	switch {
	case !errors.Is(failed, bus.ErrInProcess):
	case p.stall.refused == "":
		p.stall.refused, p.stall.first = next.EventID, now
	case p.stall.renamed == "" && now.Sub(p.stall.first) >= inProcessMost:
		p.Logger.Warn("NATS has had a message in process for too long; publishing it under another id",
			zap.String("stream", p.stream), zap.String("id", next.EventID), zap.Error(failed))
		p.stall.renamed = next.EventID
	}
	p.stepDown(ctx, now, failed)
}

// stepDown has another server lead a stream that has stored nothing for long.
func (p *publisher) stepDown(ctx context.Context, now time.Time, failed error) {
	if p.stall.changed || now.Sub(p.stall.since) < stalledMost || now.Sub(p.stall.tried) < stalledMost {
		return
	}
	p.stall.tried = now
	changed, err := p.Bus.StepDown(ctx, p.stream)
	if err != nil {
		p.Logger.Warn("cannot have another NATS server lead a stream that stores nothing; retrying", zap.String("stream", p.stream),
			zap.Duration("after", stalledMost), zap.Error(err))
		return
	}
	if changed {
		p.Logger.Warn("stream has stored nothing for long; another NATS server leads it now", zap.String("stream", p.stream),
			zap.Duration("for", now.Sub(p.stall.since)), zap.NamedError("failure", failed))
	}
	p.stall.changed = true
}

// idOf is the id under which a message is published.
func (p *publisher) idOf(m store.Outgoing) string {
	suffix := p.again
	if p.stall.renamed == m.EventID {
		suffix += "in-process"
	}
	if suffix == "" {
		return m.EventID
	}
	return bus.Again(m.EventID, suffix)
}
