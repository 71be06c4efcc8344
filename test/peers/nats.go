package main

import (
	"context"
	"fmt"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/service/pause"
)

// measureNATS measures gangs that are submitted to Muster over NATS, from the publication
// to the created RayCluster, which is created admitted.
func measureNATS(ctx context.Context, o options) (f figures, err error) {
	if f.burst, err = burstNATS(ctx, o); err != nil {
		return f, fmt.Errorf("burst: %w", err)
	}
	f.p50, f.p99, err = idleNATS(ctx, o)
	return f, err
}

func burstNATS(ctx context.Context, o options) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, burstTimeout)
	defer cancel()
	s, running, err := startMuster(ctx, o, 1, plenty)
	if err != nil {
		return 0, err
	}
	defer s.close()
	if _, err := s.first(ctx); err != nil {
		return 0, err
	}
	seen, err := s.watch(ctx)
	if err != nil {
		return 0, err
	}
	all := names(gangs("gang", o.burst, 1, 1))
	began := time.Now()
	for _, name := range all {
		if _, err := running.Bus.PublishAsync(event.SubmitSubject(queueName(0)), submission(name)); err != nil {
			return 0, err
		}
	}
	last, err := seen.await(ctx, all, len(all))
	return perSecondOf(len(all), began, last), err
}

func idleNATS(ctx context.Context, o options) (p50, p99 time.Duration, err error) {
	s, running, err := startMuster(ctx, o, 1, plenty)
	if err != nil {
		return 0, 0, err
	}
	defer s.close()
	ctx, cancel := context.WithTimeout(ctx, burstTimeout)
	defer cancel()
	if _, err := s.first(ctx); err != nil {
		return 0, 0, err
	}
	seen, err := s.watch(ctx)
	if err != nil {
		return 0, 0, err
	}
	var took []time.Duration
	for _, name := range names(gangs("gang", o.idle, 1, 1)) {
		began := time.Now()
		if _, err := running.Bus.PublishAsync(event.SubmitSubject(queueName(0)), submission(name)); err != nil {
			return 0, 0, err
		}
		last, err := seen.await(ctx, []string{name}, 1)
		if err != nil {
			return 0, 0, err
		}
		took = append(took, last.Sub(began))
		if err := pause.For(ctx, between); err != nil {
			return 0, 0, err
		}
	}
	return quantile(took, 0.50), quantile(took, 0.99), nil
}
