package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"muster.dev/muster/test/sim"
)

// bugNamed returns the planted bug of that name; "" is none.
func bugNamed(name string) (sim.Bug, error) {
	if name == "" || slices.Contains(sim.Bugs(), sim.Bug(name)) {
		return sim.Bug(name), nil
	}
	return "", fmt.Errorf("no planted bug is named %q; -hunt lists their names", name)
}

// hunt plants one bug after the other, or only the one given, and plays seeds until one of
// them breaks a promise. It reports whether each bug was found.
func hunt(ctx context.Context, only sim.Bug, first uint64, seeds int) bool {
	all, bugs := true, sim.Bugs()
	if only != "" {
		bugs = []sim.Bug{only}
	}
	for _, bug := range bugs {
		began := time.Now()
		found, breach := find(ctx, bug, first, seeds)
		if breach == nil {
			all = false
			fmt.Printf("NOT FOUND in %d seeds, %.0f s: %s\n", seeds, time.Since(began).Seconds(), bug)
			continue
		}
		fmt.Printf("seed %d (number %d, %.0f s): %s\n    %s\n", found, found-first+1, time.Since(began).Seconds(), bug, shortened(breach.Error()))
	}
	return all && ctx.Err() == nil
}

// find returns the lowest seed, of those that were played, that breaks a promise with a
// bug, and what it broke.
func find(ctx context.Context, bug sim.Bug, first uint64, seeds int) (seed uint64, breach error) {
	var (
		mu      sync.Mutex
		players sync.WaitGroup
		next    atomic.Uint64
		done    atomic.Bool
	)
	for range runtime.GOMAXPROCS(0) {
		players.Go(func() {
			for ctx.Err() == nil && !done.Load() {
				n := next.Add(1) - 1
				if n >= uint64(seeds) {
					return
				}
				r := sim.Run(sim.Options{Seed: first + n, Bug: bug})
				if r.Breach == nil {
					continue
				}
				done.Store(true)
				mu.Lock()
				if breach == nil || r.Seed < seed {
					seed, breach = r.Seed, r.Breach
				}
				mu.Unlock()
			}
		})
	}
	players.Wait()
	return seed, breach
}
