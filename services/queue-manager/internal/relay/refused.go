package relay

import (
	"context"
	"slices"

	"go.uber.org/zap"

	"muster.dev/muster/services/queue-manager/internal/store"
)

// What the database refuses of a relay's own notes is no decision. It ends no term:
// a term that ends for it would do so for ever.

// removeApart takes sent messages out of the outbox without the watermark of their stream,
// which is remembered by itself, and halves what is refused. A message that cannot be
// removed stays, and is published again by the next term, at most.
func (p *publisher) removeApart(ctx context.Context, messages []store.Outgoing) error {
	seqs := make([]int64, len(messages))
	for i, m := range messages {
		seqs[i] = m.Seq
	}
	err := p.Store.Sent(ctx, p.Epoch, seqs, p.stream, store.Watermark{})
	if !store.Suspect(err) {
		return err
	}
	if half := len(messages) / 2; half > 0 {
		if err := p.removeApart(ctx, messages[:half]); err != nil {
			return err
		}
		return p.removeApart(ctx, messages[half:])
	}
	p.refuse("outbox", "cannot remove a published message from the outbox", err, zap.String("id", messages[0].EventID))
	if p.lastOnly() {
		p.sendAgain(messages[0].Subject)
	}
	return nil
}

// keep leaves published messages in the outbox; removeKept removes them later.
func (p *publisher) keep(messages []store.Outgoing) {
	p.kept = true
	p.advance(messages[len(messages)-1].Seq)
}

// removeKept removes what was published and kept, once a watermark that covers it is
// stored. It reads the outbox again, because what is kept may be much.
func (p *publisher) removeKept(ctx context.Context) error {
	if !p.kept || !p.watermarkStored() {
		return nil
	}
	for after := int64(0); after < p.last; {
		left, err := p.Store.Unsent(ctx, p.prefixes, after, batchLimit)
		if err != nil {
			return err
		}
		published := slices.IndexFunc(left, func(m store.Outgoing) bool { return m.Seq > p.last })
		if published < 0 {
			published = len(left)
		}
		if published == 0 {
			break
		}
		if err := p.removeApart(ctx, left[:published]); err != nil {
			return err
		}
		after = left[published-1].Seq
	}
	p.kept = false
	return nil
}

// noteRepeated notes the subjects that come in a second batch while the publisher begins.
// The last term may have published both and kept them. The server may take the earlier
// one again, and the later one for a duplicate.
func (p *publisher) noteRepeated(batch []store.Outgoing) {
	if p.begun == nil {
		return
	}
	for _, m := range batch {
		if p.begun[m.Subject] {
			p.sendAgain(m.Subject)
		}
	}
	for _, m := range batch {
		p.begun[m.Subject] = true
	}
}

// sendAgain has the present command of a subject sent again after the next comparison.
func (p *publisher) sendAgain(subject string) {
	if p.stale == nil {
		p.stale = map[string]bool{}
	}
	p.stale[subject] = true
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

// moveToUndelivered takes a message that is too large for the server out of the outbox.
func (p *publisher) moveToUndelivered(ctx context.Context, m store.Outgoing, cause error) error {
	p.Logger.Error("cannot publish a message; moving it to the table undelivered", zap.String("id", m.EventID), zap.Error(cause))
	if err := p.Store.MoveToUndelivered(ctx, p.Epoch, m, cause.Error()); store.Suspect(err) {
		p.refuse("message", "cannot keep a message that cannot be published", err, zap.String("id", m.EventID))
	} else if err != nil {
		return err
	}
	if command, err := commandIn(m.Message); err == nil {
		p.Undeliverable(ctx, Undeliverable{Workload: command.Workload, Reason: cause.Error()})
	}
	return nil
}
