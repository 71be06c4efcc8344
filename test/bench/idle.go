package main

import (
	"context"
	"fmt"
	"time"

	"muster.dev/muster/pkg/service/pause"
	"muster.dev/muster/test/bench/figures"
)

// settleFor lets the operator and the scheduler finish with one gang before the
// next is measured.
const settleFor = 150 * time.Millisecond

// sampleTimeout bounds one gang.
const sampleTimeout = 30 * time.Second

// idle measures, in turn, how long the API server takes to create an object by
// hand and how long it takes from a submission until the object is there.
func idle(ctx context.Context, o options) error {
	s, err := open(ctx, o, "idle")
	if err != nil {
		return err
	}
	defer s.close()
	ctx, cancel := context.WithCancel(ctx) // ends the watch before its API server
	defer cancel()
	seen, err := s.watch(ctx)
	if err != nil {
		return err
	}
	passing, err := s.listen()
	if err != nil {
		return err
	}
	header := figures.Header(fmt.Sprintf("Submission to RayCluster created, one at a time, %d gangs", o.idle))
	var bare, muster []time.Duration
	for i := range o.idle {
		took, err := s.createByHand(ctx, fmt.Sprintf("bare-%d", i), 1)
		if err != nil {
			return err
		}
		bare = append(bare, took)
		if err := pause.For(ctx, settleFor); err != nil {
			return err
		}
		began, created, err := s.submitAlone(ctx, fmt.Sprintf("gang-%d", i), seen, passing)
		if err != nil {
			return err
		}
		muster = append(muster, created.Sub(began))
		passing.end(began, created)
		if err := pause.For(ctx, settleFor); err != nil {
			return err
		}
	}
	fmt.Println(header)
	fmt.Printf("  %-36s %10s %10s   %s\n", "", "p50", "p99", "half of them")
	line := func(what string, took []time.Duration) {
		fmt.Printf("  %-36s %10s %10s   %s\n", what, figures.Millis(figures.Quantile(took, 0.50)), figures.Millis(figures.Quantile(took, 0.99)), figures.Middle(took))
	}
	line("bare create (baseline)", bare)
	line("Muster", muster)
	passing.print()
	fmt.Printf("  %-36s %10.2f %10.2f\n\n", "ratio", ratio(muster, bare, 0.50), ratio(muster, bare, 0.99))
	return nil
}

// submitAlone submits a gang and returns when it began to, and when the RayCluster was seen.
func (s *site) submitAlone(ctx context.Context, name string, seen *sightings, passing *stages) (began, created time.Time, err error) {
	passing.begin()
	began = time.Now()
	if _, err := s.submit(name); err != nil {
		return began, created, err
	}
	ctx, stop := context.WithTimeout(ctx, sampleTimeout)
	defer stop()
	created, err = seen.await(ctx, []string{name})
	return began, created, err
}

func ratio(a, b []time.Duration, q float64) float64 {
	return float64(figures.Quantile(a, q)) / float64(figures.Quantile(b, q))
}
