// Package relay publishes the messages of the outbox in the order of their
// commits and removes them once NATS has them.
//
// A message may be published twice, when the process dies between the two; its
// id is the same, and every reader takes the same message twice. It is not for
// deciding what to say (package book).
package relay

import (
	"context"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// Outbox is where messages are kept until they are sent.
type Outbox interface {
	Unsent(ctx context.Context, after int64, limit int) ([]store.Outgoing, error)
	Complete(ctx context.Context, messages []store.Outgoing) error
	Sent(ctx context.Context, epoch int64, seqs []int64) error
}

const (
	// batchLimit is how many messages are on their way at once.
	batchLimit = 2000
	// queueLimit is how many batches of one commit each may wait here; then the
	// committer waits.
	queueLimit = 64
	retryAfter = 500 * time.Millisecond
	ackTimeout = 10 * time.Second
)

// Relay publishes; Run does the work.
type Relay struct {
	epoch     int64
	outbox    Outbox
	bus       *bus.Bus
	logger    *zap.Logger
	committed chan []store.Outgoing
}

// New returns a relay for one term as leader.
func New(epoch int64, outbox Outbox, b *bus.Bus, logger *zap.Logger) *Relay {
	return &Relay{epoch: epoch, outbox: outbox, bus: b, logger: logger, committed: make(chan []store.Outgoing, queueLimit)}
}

// Hand gives the relay messages that were just committed, in order.
func (r *Relay) Hand(ctx context.Context, messages []store.Outgoing) {
	if len(messages) == 0 {
		return
	}
	select {
	case r.committed <- messages:
	case <-ctx.Done(): // they are in the outbox and leave with the next term
	}
}

// Run publishes what earlier terms left in the outbox, then what is handed over,
// until ctx ends.
func (r *Relay) Run(ctx context.Context) error {
	var last int64
	for {
		left, err := r.outbox.Unsent(ctx, last, batchLimit)
		if err != nil {
			return err
		}
		if len(left) == 0 {
			break
		}
		if err := r.send(ctx, left); err != nil {
			return err
		}
		last = left[len(left)-1].Seq
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case messages := <-r.committed:
			messages = r.behind(last, r.more(messages))
			if err := r.send(ctx, messages); err != nil {
				return err
			}
		}
	}
}

// more adds what else has been committed meanwhile.
func (r *Relay) more(messages []store.Outgoing) []store.Outgoing {
	for len(messages) < batchLimit {
		select {
		case next := <-r.committed:
			messages = append(messages, next...)
		default:
			return messages
		}
	}
	return messages
}

// behind leaves out what was already read from the outbox.
func (r *Relay) behind(last int64, messages []store.Outgoing) []store.Outgoing {
	for len(messages) > 0 && messages[0].Seq <= last {
		messages = messages[1:]
	}
	return messages
}

// send publishes until NATS has all of them, in order, however long it takes.
func (r *Relay) send(ctx context.Context, messages []store.Outgoing) error {
	if err := r.outbox.Complete(ctx, messages); err != nil {
		return err
	}
	for len(messages) > 0 {
		sent, err := r.publish(ctx, messages)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if sent > 0 {
			seqs := make([]int64, sent)
			for i, m := range messages[:sent] {
				seqs[i] = m.Seq
			}
			if err := r.outbox.Sent(ctx, r.epoch, seqs); err != nil {
				return err
			}
			messages = messages[sent:]
		}
		if err != nil {
			r.logger.Warn("cannot publish from the outbox; trying again", zap.Error(err),
				zap.Int("waiting", len(messages)), zap.Duration("after", retryAfter))
			if err := r.bus.EnsureStreams(ctx); err != nil {
				r.logger.Warn("cannot restore streams", zap.Error(err))
			}
			pause(ctx, retryAfter)
		}
	}
	return nil
}

// publish sends all and returns how many of them, from the first, NATS has.
func (r *Relay) publish(ctx context.Context, messages []store.Outgoing) (sent int, err error) {
	ctx, cancel := context.WithTimeout(ctx, ackTimeout)
	defer cancel()
	published := make([]bus.Published, 0, len(messages))
	for _, m := range messages {
		p, failed := r.bus.PublishEncoded(m.Subject, m.EventID, m.Message, m.TTL)
		if failed != nil {
			err = failed
			break
		}
		published = append(published, p)
	}
	for i, p := range published {
		if failed := p.Wait(ctx); failed != nil {
			return i, failed
		}
	}
	return len(published), err
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
