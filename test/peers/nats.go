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
func measureNATS(ctx context.Context, o options) (r results, err error) {
	for range o.rounds {
		rate, err := burstNATS(ctx, o)
		if err != nil {
			return r, fmt.Errorf("burst: %w", err)
		}
		r.burst = append(r.burst, rate)
	}
	r.idle, err = idleNATS(ctx, o)
	return r, err
}

func burstNATS(ctx context.Context, o options) (float64, error) {
	s, running, err := startMuster(ctx, o, kinds()[0], 1, plenty)
	if err != nil {
		return 0, err
	}
	defer s.close()
	ctx, cancel := context.WithTimeout(ctx, burstTimeout)
	defer cancel()
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

func idleNATS(ctx context.Context, o options) (took []time.Duration, err error) {
	s, running, err := startMuster(ctx, o, kinds()[0], 1, plenty)
	if err != nil {
		return nil, err
	}
	defer s.close()
	ctx, cancel := context.WithTimeout(ctx, burstTimeout)
	defer cancel()
	if _, err := s.first(ctx); err != nil {
		return nil, err
	}
	seen, err := s.watch(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range names(gangs("gang", o.idle, 1, 1)) {
		began := time.Now()
		if _, err := running.Bus.PublishAsync(event.SubmitSubject(queueName(0)), submission(name)); err != nil {
			return nil, err
		}
		last, err := seen.await(ctx, []string{name}, 1)
		if err != nil {
			return nil, err
		}
		took = append(took, last.Sub(began))
		if err := pause.For(ctx, between); err != nil {
			return nil, err
		}
	}
	return took, nil
}
