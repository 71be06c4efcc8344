package main

import (
	"context"
	"fmt"
	"os"
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
