package app

import (
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/services/intake/internal/submission"
)

// errDropped is the reason for submissions that were dropped unread.
var errDropped = errors.New("the queue had more unread submissions than its share of the stream; submit them again, more slowly")

// droppedEvery bounds how often a queue gets an event about drops, because the stream
// of events is bounded, too.
const droppedEvery = time.Second

// dropped reports that submissions on a subject were dropped unread because they
// filled the stream.
func (in *intake) dropped(subject string, messages uint64) {
	in.results.WithLabelValues("dropped").Add(float64(messages))
	in.logger.Error("submissions dropped unread from a subject that filled the stream", zap.String("subject", subject),
		zap.Uint64("messages", messages))
	if allowed, _ := in.answers.Allows(subject); !allowed {
		return
	}
	now := time.Now()
	rejected, err := submission.RejectUnread(submission.Message{Subject: subject, Stored: now, Sequence: uint64(now.UnixNano())},
		fmt.Errorf("%d submissions were dropped unread: %w", messages, errDropped))
	if err == nil {
		_, err = in.bus.PublishAsync(rejected.Subject, rejected.Event) // nothing waits for it
	}
	if err != nil {
		in.logger.Warn("cannot publish the rejection of dropped submissions", zap.String("subject", subject), zap.Error(err))
	}
}
