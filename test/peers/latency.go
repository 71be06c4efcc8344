package main

import (
	"context"
	"slices"
	"time"

	"muster.dev/muster/pkg/service/pause"
)

// idle measures the time from the creation of a gang to its admission, one at a time. The
// time of the creation's own request counts.
func idle(ctx context.Context, o options, open opened) (p50, p99 time.Duration, err error) {
	s, err := open(ctx, o, 1, plenty)
	if err != nil {
		return 0, 0, err
	}
	defer s.close()
	if _, err := s.first(ctx); err != nil {
		return 0, 0, err
	}
	took, err := s.oneByOne(ctx, gangs("gang", o.idle, 1, 1), nil)
	return quantile(took, 0.50), quantile(took, 0.99), err
}

// first measures the first gang of a site. The API server reads the schemas of RayClusters
// for its policies, and compiles them, when the first one is created.
func (s *site) first(ctx context.Context) (time.Duration, error) {
	took, err := s.oneByOne(ctx, gangs("first", 1, 1, 1), nil)
	return quantile(took, 0.50), err
}

// oneByOne creates gangs one after the other, each after what makes room for it.
func (s *site) oneByOne(ctx context.Context, all []gang, room func(i int) error) (took []time.Duration, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen, err := s.watch(ctx)
	if err != nil {
		return nil, err
	}
	for i, g := range all {
		if room != nil {
			if err := room(i); err != nil {
				return nil, err
			}
		}
		waiting, stop := context.WithTimeout(ctx, sampleTimeout)
		began := time.Now()
		err := s.submit(waiting, g)
		if err == nil {
			var last time.Time
			last, err = seen.await(waiting, []string{g.name}, 1)
			took = append(took, last.Sub(began))
		}
		stop()
		if err != nil {
			return took, err
		}
		if err := pause.For(ctx, between); err != nil {
			return took, err
		}
	}
	return took, nil
}

func quantile(samples []time.Duration, q float64) time.Duration {
	if len(samples) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
