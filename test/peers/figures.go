package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"muster.dev/muster/pkg/service/pause"
)

const (
	// plenty of GPUs: of all queues together as many as the nodes have.
	plenty = 8000
	// settleFor is how long a peer may write after the last admission of a burst.
	settleFor = 5 * time.Second
	// between gangs of the idle measurement.
	between = 150 * time.Millisecond
	// sampleTimeout bounds the admission of one gang, burstTimeout that of many.
	sampleTimeout, burstTimeout = 5 * time.Minute, 20 * time.Minute
	// small gangs come behind those that do not fit.
	small = 10
)

// figures are what is measured of a peer.
type figures struct {
	burst, burstQueues float64       // gangs admitted per second
	first              time.Duration // the first gang after the API server's start
	p50, p99           time.Duration
	behind             time.Duration // median, of a gang that fits behind those that do not
	replaced           float64       // gangs admitted per second in place of others that ended
	writes             float64       // of the API server for each gang of the burst, its creation included
	used               time.Duration // processor time for each gang of the burst
}

// measure takes the figures of Kueue, of Muster by kubectl and of Muster over NATS, in turns.
func measure(ctx context.Context, o options) (kueue, muster, nats figures, err error) {
	for _, m := range measurements(o) {
		for _, peer := range []struct {
			name string
			open opened
			f    *figures
		}{{"kueue", openKueue, &kueue}, {"muster", openMuster, &muster}} {
			if err := m.take(ctx, peer.open, peer.f); err != nil {
				return kueue, muster, nats, fmt.Errorf("%s: %s: %w", peer.name, m.name, err)
			}
			fmt.Fprintf(os.Stderr, "peers: measured %s of %s, load %s\n", m.name, peer.name, load())
		}
	}
	if !o.withoutNATS {
		if nats, err = measureNATS(ctx, o); err != nil {
			return kueue, muster, nats, fmt.Errorf("muster over nats: %w", err)
		}
	}
	return kueue, muster, nats, nil
}

// measurement takes one or more figures of a peer on a fresh cluster.
type measurement struct {
	name string
	take func(context.Context, opened, *figures) error
}

func measurements(o options) []measurement {
	all := []measurement{
		{"burst in one queue", func(ctx context.Context, open opened, f *figures) (err error) {
			f.burst, err = burst(ctx, o, open, 1, f)
			return err
		}},
		{fmt.Sprintf("burst in %d queues", o.queues), func(ctx context.Context, open opened, f *figures) (err error) {
			f.burstQueues, err = burst(ctx, o, open, o.queues, nil)
			return err
		}},
		{"one at a time", func(ctx context.Context, open opened, f *figures) (err error) {
			f.p50, f.p99, err = idle(ctx, o, open)
			return err
		}},
	}
	if o.withoutDepth {
		return all
	}
	return append(all,
		measurement{fmt.Sprintf("behind %d that do not fit", o.deep), func(ctx context.Context, open opened, f *figures) (err error) {
			f.behind, err = behind(ctx, o, open)
			return err
		}},
		measurement{fmt.Sprintf("replaced with %d waiting", o.deep), func(ctx context.Context, open opened, f *figures) (err error) {
			f.replaced, err = replaced(ctx, o, open)
			return err
		}})
}

// burst measures how fast gangs that all fit are admitted, from the first creation to the
// last admission. With cost, it also measures what the gangs cost.
func burst(ctx context.Context, o options, open opened, queues int, cost *figures) (perSecond float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, burstTimeout)
	defer cancel()
	s, err := open(ctx, o, queues, plenty/queues)
	if err != nil {
		return 0, err
	}
	defer s.close()
	first, err := s.first(ctx)
	if err != nil {
		return 0, err
	}
	seen, err := s.watch(ctx)
	if err != nil {
		return 0, err
	}
	before, err := s.writes(ctx)
	if err != nil {
		return 0, err
	}
	used := s.used()
	all := gangs("gang", o.burst, queues, 1)
	began := time.Now()
	if err := s.submitAll(ctx, all); err != nil {
		return 0, err
	}
	last, err := seen.await(ctx, names(all), len(all))
	if err != nil || cost == nil {
		return perSecondOf(len(all), began, last), err
	}
	if err := pause.For(ctx, settleFor); err != nil {
		return 0, err
	}
	after, err := s.writes(ctx)
	if err != nil {
		return 0, err
	}
	cost.first = first
	cost.writes = (after - before) / float64(len(all))
	cost.used = (s.used() - used) / time.Duration(len(all))
	return perSecondOf(len(all), began, last), nil
}

func perSecondOf(count int, began, last time.Time) float64 {
	return float64(count) / last.Sub(began).Seconds()
}

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

// filled opens a site whose one queue is full of gangs of one GPU, and behind them waits a
// backlog.
func filled(ctx context.Context, o options, open opened, full, each int) (s *site, fillers []gang, seen *admissions, err error) {
	if s, err = open(ctx, o, 1, full); err != nil {
		return nil, nil, nil, err
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if seen, err = s.watch(ctx); err != nil {
		return s, nil, nil, err
	}
	fillers = gangs("filler", full, 1, 1)
	if err = s.submitAll(ctx, fillers); err != nil {
		return s, nil, nil, err
	}
	if _, err = seen.await(ctx, names(fillers), len(fillers)); err != nil {
		return s, nil, nil, err
	}
	if err = s.submitAll(ctx, gangs("waiting", o.deep, 1, each)); err != nil {
		return s, nil, nil, err
	}
	err = s.awaitWaiting(ctx, o.deep)
	return s, fillers, seen, err
}

// behind measures a small gang that comes behind a backlog of gangs that need more than
// there is: a gang ends, and a small one fits in its place.
func behind(ctx context.Context, o options, open opened) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, burstTimeout)
	defer cancel()
	s, fillers, _, err := filled(ctx, o, open, small, small+1)
	if err != nil {
		return 0, err
	}
	defer s.close()
	took, err := s.oneByOne(ctx, gangs("small", small, 1, 1), func(i int) error {
		return s.deleteAll(ctx, fillers[i:i+1])
	})
	return quantile(took, 0.50), err
}

// replaced measures how fast waiting gangs take the places of others that end at once.
func replaced(ctx context.Context, o options, open opened) (perSecond float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, burstTimeout)
	defer cancel()
	s, fillers, seen, err := filled(ctx, o, open, o.replaced, 1)
	if err != nil {
		return 0, err
	}
	defer s.close()
	began := time.Now()
	if err := s.deleteAll(ctx, fillers); err != nil {
		return 0, err
	}
	last, err := seen.await(ctx, names(gangs("waiting", o.deep, 1, 1)), o.replaced)
	return perSecondOf(o.replaced, began, last), err
}
