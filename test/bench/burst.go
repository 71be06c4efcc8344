package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// handsAtOnce is how many creations by hand are under way, as many as the
// dispatcher has.
const handsAtOnce = 32

// burstTimeout bounds the creation of all gangs.
const burstTimeout = time.Minute

// bursts measures, round after round, how fast the API server takes the objects
// by hand and how fast Muster brings as many submissions there, each in a fresh
// cluster. All shares the machine with what the objects set going, so single
// rounds differ much; the median is what counts.
func bursts(ctx context.Context, o options) error {
	var bares, musters, ratios []float64
	fmt.Printf("%d gangs at once, to the last RayCluster created:\n", o.burst)
	fmt.Printf("  %-8s %22s %10s %6s   %s\n", "", "bare create (baseline)", "Muster", "ratio", "all admitted and committed after")
	for round := range o.rounds {
		bare, err := burstByHand(ctx, o)
		if err != nil {
			return err
		}
		muster, admitted, err := burstByMuster(ctx, o)
		if err != nil {
			return err
		}
		bares, musters, ratios = append(bares, bare), append(musters, muster), append(ratios, muster/bare)
		fmt.Printf("  round %-2d %13.1f gangs/s %7.1f /s %6.2f   %s\n", round+1, bare, muster, muster/bare, admitted.Round(time.Millisecond))
	}
	fmt.Printf("  median   %13.1f gangs/s %7.1f /s %6.2f\n\n", median(bares), median(musters), median(ratios))
	return nil
}

func median(figures []float64) float64 {
	sorted := slices.Sorted(slices.Values(figures))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
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
			_, err := s.createByHand(ctx, fmt.Sprintf("bare-%d", i), 1)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	return float64(o.burst) / time.Since(began).Seconds(), nil
}

func burstByMuster(ctx context.Context, o options) (perSecond float64, admitted time.Duration, err error) {
	s, err := open(ctx, o, "muster")
	if err != nil {
		return 0, 0, err
	}
	defer s.close()
	ctx, cancel := context.WithTimeout(ctx, burstTimeout)
	defer cancel()
	seen, err := s.watch(ctx)
	if err != nil {
		return 0, 0, err
	}
	commanded, err := s.lastCommand()
	if err != nil {
		return 0, 0, err
	}
	var names []string
	began := time.Now()
	for i := range o.burst {
		names = append(names, fmt.Sprintf("gang-%d", i))
		if _, err := s.submit(names[i]); err != nil {
			return 0, 0, err
		}
	}
	last, err := seen.await(ctx, names)
	if err != nil {
		return 0, 0, err
	}
	return float64(o.burst) / last.Sub(began).Seconds(), commanded().Sub(began), nil
}
