package relay

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// overtakeTries bounds how often a command is tried behind what is last on its
// subject.
const overtakeTries = 5

// overtake publishes a command although something else than expected is last on
// its subject: our own message, of which we did not hear; an older command, of
// another term; or a newer one, which this one must not follow. It returns where
// the command is, or with newer where that newer one is.
func (l *lane) overtake(ctx context.Context, m store.Outgoing) (sequence uint64, newer bool, err error) {
	mine, err := commandIn(m.Message)
	if err != nil {
		return 0, false, err
	}
	for range overtakeTries {
		last, err := l.Bus.LastMessage(ctx, l.stream, m.Subject)
		if err != nil {
			return 0, false, err
		}
		end := uint64(0)
		if last != nil {
			if end = last.Sequence; last.MessageID() == m.EventID {
				return end, false, nil
			}
			theirs, err := commandIn(last.Data)
			if err == nil && theirs.Supersedes(mine) {
				l.Logger.Warn("command not published: a newer one is there", zap.String("workload", string(mine.Workload)),
					zap.Int64("epoch", mine.Epoch), zap.Int64("newer epoch", theirs.Epoch))
				return end, true, nil
			}
		}
		p, err := l.Bus.PublishAfter(m.Subject, m.EventID, m.Message, m.TTL, end)
		if err != nil {
			return 0, false, err
		}
		if sequence, err = p.Stored(ctx); err == nil {
			return sequence, false, nil
		}
	}
	return 0, false, fmt.Errorf("publish command %q on %s: %w %d times", m.EventID, m.Subject, bus.ErrOvertaken, overtakeTries)
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
