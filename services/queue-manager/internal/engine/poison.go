package engine

import (
	"context"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
)

// message names one message of a stream.
type message struct {
	subject  string
	sequence uint64
}

// poison are the messages that have ended a term of this process, with the reason:
// they must not end the next one. Another process finds out for itself.
type poison map[message]string

func (p poison) add(d bus.Delivery, reason string) { p[message{d.Subject, d.Sequence}] = reason }

func (p poison) cause(d bus.Delivery) (reason string, known bool) {
	reason, known = p[message{d.Subject, d.Sequence}]
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
