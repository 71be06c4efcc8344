package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// handsAtOnce is how many creations by hand are under way, as many as the
// dispatcher has.
const handsAtOnce = 32

// burstTimeout bounds the creation of all gangs.
const burstTimeout = time.Minute

// burst measures, each in a fresh cluster, how fast the API server takes the
// objects by hand and how fast Muster brings as many submissions there.
func burst(ctx context.Context, o options, round int) error {
	bare, err := burstByHand(ctx, o)
	if err != nil {
		return err
	}
	muster, err := burstByMuster(ctx, o)
	if err != nil {
		return err
	}
	fmt.Printf("%d gangs at once, to the last RayCluster created (round %d):\n", o.burst, round+1)
	fmt.Printf("  %-24s %8.1f gangs/s\n", "bare create (baseline)", bare)
	fmt.Printf("  %-24s %8.1f gangs/s\n", "Muster", muster)
	fmt.Printf("  %-24s %8.2f\n\n", "ratio", muster/bare)
	return nil
}

func burstByHand(ctx context.Context, o options) (perSecond float64, err error) {
	s, err := open(ctx, o, "bare")
	if err != nil {
		return 0, err
	}
	defer s.close()
	ctx, cancel := context.WithTimeout(ctx, burstTimeout)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(handsAtOnce)
	began := time.Now()
	for i := range o.burst {
		group.Go(func() error {
			_, err := s.createByHand(ctx, fmt.Sprintf("bare-%d", i))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	return float64(o.burst) / time.Since(began).Seconds(), nil
}

func burstByMuster(ctx context.Context, o options) (perSecond float64, err error) {
	s, err := open(ctx, o, "muster")
	if err != nil {
		return 0, err
	}
	defer s.close()
	ctx, cancel := context.WithTimeout(ctx, burstTimeout)
	defer cancel()
	seen, err := s.watch(ctx)
	if err != nil {
		return 0, err
	}
	commanded, err := s.lastCommand()
	if err != nil {
		return 0, err
	}
	var names []string
	began := time.Now()
	for i := range o.burst {
		names = append(names, fmt.Sprintf("gang-%d", i))
		if _, err := s.submit(names[i]); err != nil {
			return 0, err
		}
	}
	last, err := seen.await(ctx, names)
	if err != nil {
		return 0, err
	}
	fmt.Printf("  (all admitted and committed after %s, all created after %s)\n",
		commanded().Sub(began).Round(time.Millisecond), last.Sub(began).Round(time.Millisecond))
	return float64(o.burst) / last.Sub(began).Seconds(), nil
}
