package httpserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/service/pause"
	"muster.dev/muster/pkg/spec/workload"
)

const (
	// publishTimeout bounds the retries of one publication. With storedTimeout it fits
	// into requestTimeout.
	publishTimeout = requestTimeout - storedTimeout
	// The first retry comes after publishRetry; the pauses double.
	publishRetry = 100 * time.Millisecond
)

// publish stores an event. What NATS refuses for the moment it tries again, under the
// same id, so that NATS keeps one of them.
func (s *Server) publish(ctx context.Context, subject string, e event.Envelope) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	var refused error // the last that has more than that the time is over
	for after := publishRetry; ; after *= 2 {
		err := s.Bus.Publish(ctx, subject, e)
		if err == nil {
			return nil
		}
		if refused == nil || ctx.Err() == nil {
			refused = err
		}
		if mayPass := errors.Is(err, bus.ErrFull) || errors.Is(err, bus.ErrNoStream) || errors.Is(err, context.DeadlineExceeded); !mayPass {
			return err
		}
		if pause.For(ctx, after) != nil {
			return fmt.Errorf("retried for %s: %w", publishTimeout, refused)
		}
	}
}

// publishOf publishes what is asked of a workload.
func (s *Server) publishOf(ctx context.Context, record workload.Record, asked event.Payload) error {
	envelope, err := event.New(event.NewID(), source, time.Now(), asked)
	if err != nil {
		return err
	}
	return s.publish(ctx, event.WorkloadSubject(record.Queue), envelope)
}
