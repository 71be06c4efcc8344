package engine

import (
	"context"
	"crypto/sha256"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
)

// message names a message by what it says: places in a stream begin with 1 again
// when the stream is made once more, and would then name another message.
type message struct {
	subject string
	digest  [sha256.Size]byte
}

func messageOf(d bus.Delivery) message { return message{d.Subject, sha256.Sum256(d.Data)} }

// poison are the messages that have ended a term of this process, with the reason:
// they must not end the next one. Another process finds out for itself.
type poison map[message]string

func (p poison) add(d bus.Delivery, reason string) { p[messageOf(d)] = reason }

func (p poison) cause(d bus.Delivery) (reason string, known bool) {
	reason, known = p[messageOf(d)]
	return reason, known
}

// bury gives a message up and keeps it with the reason. One that is a last value
// stays where it is.
func (desk *Desk) bury(ctx context.Context, d bus.Delivery, reason string) {
	desk.Unreadable.Inc()
	desk.Logger.Error("message given up", zap.String("subject", d.Subject), zap.Uint64("sequence", d.Sequence), zap.String("reason", reason))
	if d.Settles() {
		desk.Bury(ctx, d, reason)
	}
}
