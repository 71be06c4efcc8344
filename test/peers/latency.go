package main

import (
	"context"
	"time"

	"muster.dev/muster/pkg/service/pause"
	"muster.dev/muster/test/bench/figures"
)

// idle measures the time from the creation of a gang to its admission, one at a time. The
// time of the creation's own request counts.
func idle(ctx context.Context, o options, of kind, open opened) (took []time.Duration, err error) {
	s, err := open(ctx, o, of, 1, plenty)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if _, err := s.first(ctx); err != nil {
		return nil, err
	}
	return s.oneByOne(ctx, gangs("gang", o.idle, 1, 1), nil)
}

// first measures the first gang of a site. The API server reads the schemas of a kind
// for its policies, and compiles them, when the first object of it is created. The installation of
// Muster does that before, in a dry run.
func (s *site) first(ctx context.Context) (time.Duration, error) {
	took, err := s.oneByOne(ctx, gangs("first", 1, 1, 1), nil)
	return figures.Quantile(took, 0.50), err
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
