package relay

import (
	"context"

	"go.uber.org/zap"

	"muster.dev/muster/services/queue-manager/internal/store"
)

// What the database refuses of a relay's own notes is no decision. It ends no term:
// a term that ends for it would do so for ever.

// sentApart takes sent messages out of the outbox without the watermark of their stream,
// which is remembered by itself, and halves what is refused. A message that cannot be
// removed stays, and is published again by the next term, at most.
func (p *publisher) sentApart(ctx context.Context, messages []store.Outgoing) error {
	seqs := make([]int64, len(messages))
	for i, m := range messages {
		seqs[i] = m.Seq
	}
	err := p.Store.Sent(ctx, p.Epoch, seqs, p.stream, store.Watermark{})
	if !store.Suspect(err) {
		return err
	}
	if half := len(messages) / 2; half > 0 {
		if err := p.sentApart(ctx, messages[:half]); err != nil {
			return err
		}
		return p.sentApart(ctx, messages[half:])
	}
	p.refuse("outbox", "cannot remove a published message from the outbox", err, zap.String("id", messages[0].EventID))
	if p.lastOnly() {
		if p.stale == nil {
			p.stale = map[string]bool{}
		}
		p.stale[messages[0].Subject] = true
	}
	return nil
}

// withoutStale returns the subjects that have their last command. One that comes from
// the outbox again may be older than what was there.
func (p *publisher) withoutStale(present map[string]bool) map[string]bool {
	for subject := range p.stale {
		delete(present, subject)
	}
	p.stale = nil
	return present
}

// refuse logs and counts something that the database refuses to store.
func (p *publisher) refuse(what, message string, cause error, fields ...zap.Field) {
	p.Logger.Error(message, append(fields, zap.String("stream", p.stream), zap.Error(cause))...)
	p.Refused(what)
}

// setAside gets a message that is too large for the server out of the way.
func (p *publisher) setAside(ctx context.Context, m store.Outgoing, cause error) error {
	p.Logger.Error("cannot publish a message; setting it aside", zap.String("id", m.EventID), zap.Error(cause))
	if err := p.Store.SetAside(ctx, p.Epoch, m, cause.Error()); store.Suspect(err) {
		p.refuse("message", "cannot keep a message that cannot be published", err, zap.String("id", m.EventID))
	} else if err != nil {
		return err
	}
	if command, err := commandIn(m.Message); err == nil {
		p.Undeliverable(ctx, Undeliverable{Workload: command.Workload, Reason: cause.Error()})
	}
	return nil
}
