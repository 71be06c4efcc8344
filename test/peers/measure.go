package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"muster.dev/muster/pkg/service/pause"
	"muster.dev/muster/test/bench/figures"
	"muster.dev/muster/test/bench/sections"
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

// results are what is measured of a peer.
type results struct {
	burst, burstQueues []float64       // gangs admitted per second, by round
	first              []time.Duration // the first gang after the API server's start, by round
	idle               []time.Duration // one at a time
	behind             []time.Duration // of a gang that fits behind those that do not
	replaced           []float64       // gangs admitted per second in place of others that ended, by round
	writes             []float64       // of the API server for each gang of a burst, its creation included, by round
	used               []time.Duration // processor time for each gang of a burst, by round
}

// measure takes the figures of Kueue and of Muster by kubectl for a kind of gangs, in turns.
func measure(ctx context.Context, o options, chosen []sections.Section[measurement], of kind) (kueue, muster results, err error) {
	for _, m := range chosen {
		if m.Take.take == nil {
			continue
		}
		rounds := 1
		if m.Take.repeated {
			rounds = o.rounds
		}
		for range rounds {
			for _, peer := range []struct {
				name string
				open opened
				r    *results
			}{{"kueue", openKueue, &kueue}, {"muster", openMuster, &muster}} {
				if err := m.Take.take(ctx, o, of, peer.open, peer.r); err != nil {
					return kueue, muster, fmt.Errorf("%s: %s of %s: %w", peer.name, m.Name, of.title, err)
				}
				fmt.Fprintf(os.Stderr, "peers: measured %s of %s with %s, load %s\n", m.Name, peer.name, of.title, figures.Load())
			}
		}
	}
	return kueue, muster, nil
}

// measurement takes one or more figures of a peer on a fresh cluster.
type measurement struct {
	repeated bool // in rounds
	// take is nil for what Kueue has no counterpart of.
	take func(context.Context, options, kind, opened, *results) error
}

// natsSection has the measurements over NATS.
const natsSection = "nats"

func measurements() []sections.Section[measurement] {
	return []sections.Section[measurement]{
		{Name: "burst", Take: measurement{true, func(ctx context.Context, o options, of kind, open opened, r *results) error {
			rate, err := burst(ctx, o, of, open, 1, r)
			r.burst = append(r.burst, rate)
			return err
		}}},
		{Name: "queues", Take: measurement{true, func(ctx context.Context, o options, of kind, open opened, r *results) error {
			rate, err := burst(ctx, o, of, open, o.queues, nil)
			r.burstQueues = append(r.burstQueues, rate)
			return err
		}}},
		{Name: "idle", Take: measurement{false, func(ctx context.Context, o options, of kind, open opened, r *results) (err error) {
			r.idle, err = idle(ctx, o, of, open)
			return err
		}}},
		{Name: "behind", Take: measurement{false, func(ctx context.Context, o options, of kind, open opened, r *results) (err error) {
			r.behind, err = behind(ctx, o, of, open)
			return err
		}}},
		{Name: "replaced", Take: measurement{true, func(ctx context.Context, o options, of kind, open opened, r *results) error {
			rate, err := replaced(ctx, o, of, open)
			r.replaced = append(r.replaced, rate)
			return err
		}}},
		{Name: natsSection},
	}
}

// burst measures how fast gangs that all fit are admitted, from the first creation to the
// last admission. With cost, it also measures what the gangs cost.
func burst(ctx context.Context, o options, of kind, open opened, queues int, cost *results) (perSecond float64, err error) {
	s, err := open(ctx, o, of, queues, plenty/queues)
	if err != nil {
		return 0, err
	}
	defer s.close()
	ctx, cancel := context.WithTimeout(ctx, burstTimeout) // ends the watch before its API server
	defer cancel()
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
	cost.first = append(cost.first, first)
	cost.writes = append(cost.writes, (after-before)/float64(len(all)))
	cost.used = append(cost.used, (s.used()-used)/time.Duration(len(all)))
	return perSecondOf(len(all), began, last), nil
}

func perSecondOf(count int, began, last time.Time) float64 {
	return float64(count) / last.Sub(began).Seconds()
}

// fill fills the one queue of a site with gangs of one GPU, and has a backlog wait behind them.
func (s *site) fill(ctx context.Context, o options, full, each int) (fillers []gang, seen *admissions, err error) {
	if seen, err = s.watch(ctx); err != nil {
		return nil, nil, err
	}
	fillers = gangs("filler", full, 1, 1)
	if err := s.submitAll(ctx, fillers); err != nil {
		return nil, nil, err
	}
	if _, err := seen.await(ctx, names(fillers), len(fillers)); err != nil {
		return nil, nil, err
	}
	if err := s.submitAll(ctx, gangs("waiting", o.deep, 1, each)); err != nil {
		return nil, nil, err
	}
	return fillers, seen, s.awaitWaiting(ctx, o.deep)
}

// behind measures a small gang that comes behind a backlog of gangs that need more than
// there is: a gang ends, and a small one fits in its place.
func behind(ctx context.Context, o options, of kind, open opened) ([]time.Duration, error) {
	s, err := open(ctx, o, of, 1, small)
	if err != nil {
		return nil, err
	}
	defer s.close()
	ctx, cancel := context.WithTimeout(ctx, burstTimeout)
	defer cancel()
	fillers, _, err := s.fill(ctx, o, small, small+1)
	if err != nil {
		return nil, err
	}
	return s.oneByOne(ctx, gangs("small", small, 1, 1), func(i int) error {
		return s.deleteAll(ctx, fillers[i:i+1])
	})
}

// replaced measures how fast waiting gangs take the places of others that end at once.
func replaced(ctx context.Context, o options, of kind, open opened) (perSecond float64, err error) {
	s, err := open(ctx, o, of, 1, o.replaced)
	if err != nil {
		return 0, err
	}
	defer s.close()
	ctx, cancel := context.WithTimeout(ctx, burstTimeout)
	defer cancel()
	fillers, seen, err := s.fill(ctx, o, o.replaced, 1)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := s.deleteAll(ctx, fillers); err != nil {
		return 0, err
	}
	last, err := seen.await(ctx, names(gangs("waiting", o.deep, 1, 1)), o.replaced)
	return perSecondOf(o.replaced, began, last), err
}
