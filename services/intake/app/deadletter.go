package app

import (
	"context"
	"errors"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/services/intake/internal/budget"
	"muster.dev/muster/services/intake/internal/submission"
)

// mostAttempts bounds the deliveries of a message for which Muster cannot make a
// result: another attempt would fail, too.
const mostAttempts = 10

// redeliver returns a message for redelivery after its result could not be published, or
// dead-letters it when another attempt would fail, too.
func (in *intake) redeliver(ctx context.Context, d bus.Delivery, message submission.Message, cause error) {
	if d.Attempts >= mostAttempts && (errors.Is(cause, errUnreadable) || errors.Is(cause, bus.ErrTooLarge)) {
		in.deadLetter(ctx, d, message, cause)
		return
	}
	in.retry(d, cause)
}

// deadLetter rejects a message to its submitter and dead-letters it with the reason.
func (in *intake) deadLetter(ctx context.Context, d bus.Delivery, message submission.Message, cause error) {
	rejected, err := budget.Do(ctx, in.budget, len(d.Data), d.Working, func() readOne {
		result, err := submission.Reject(message, cause)
		return readOne{message, result, err}
	})
	result, failed := rejected.result, errors.Join(err, rejected.err)
	if failed != nil { // not even its id can be read
		result, failed = submission.RejectUnread(message, cause)
	}
	in.rejectAndDeadLetter(ctx, d, result, cause, failed)
}

// errDeadly is the reason for dead-lettering a message that kills its readers.
var errDeadly = errors.New("reading the message ends the process that reads it; change its content and submit it again")

// deadLetterUnread is deadLetter for a message that must not be read.
func (in *intake) deadLetterUnread(ctx context.Context, d bus.Delivery, message submission.Message) {
	result, failed := submission.RejectUnread(message, errDeadly)
	in.rejectAndDeadLetter(ctx, d, result, errDeadly, failed)
}

// rejectAndDeadLetter publishes the rejection, unless making it failed, and dead-letters the
// message.
func (in *intake) rejectAndDeadLetter(ctx context.Context, d bus.Delivery, result submission.Result, cause, failed error) {
	if failed == nil {
		waiting, cancel := context.WithTimeout(ctx, storeTimeout)
		defer cancel()
		failed = in.bus.Publish(waiting, result.Subject, result.Event)
	}
	if failed != nil && !errors.Is(failed, bus.ErrTooLarge) {
		in.retry(d, errors.Join(cause, failed))
		return
	}
	in.results.WithLabelValues("given up").Inc()
	in.logger.Error("submission dead-lettered", zap.String("subject", d.Subject), zap.Uint64("sequence", d.Sequence), zap.Error(cause))
	in.suspects.forget(d)
	in.bus.PublishDeadLetter(ctx, d, cause.Error())
}
