// Command run plays Muster from many seeds, prints what it did and, when a promise
// was broken, the shortest story of it. `make sim SEEDS=1000` starts it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"muster.dev/muster/test/sim"
)

func main() {
	seeds := flag.Int("seeds", 1000, "how many `seeds`")
	first := flag.Uint64("first", 0, "the first `seed`")
	bug := flag.String("bug", "", "a planted `bug` to find, by its name")
	verbose := flag.Bool("verbose", false, "print the whole story of each seed")
	keep := flag.String("keep", "", "`directory` where the script of a failure is kept as a test")
	shrink := flag.Duration("shrink", 2*time.Minute, "how long the shortest story is looked for")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if !play(ctx, *first, *seeds, sim.Bug(*bug), *verbose, *keep, *shrink) {
		stop()
		os.Exit(1)
	}
}

// total sums up what was played.
type total struct {
	mu        sync.Mutex
	seeds     int
	events    int
	simulated time.Duration
	faults    map[sim.Fault]int
	failed    []sim.Result
}

func (t *total) add(r sim.Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seeds++
	t.events += r.Events
	t.simulated += r.Simulated
	for kind, count := range r.Faults {
		t.faults[kind] += count
	}
	if r.Breach != nil {
		t.failed = append(t.failed, r)
	}
}

func play(ctx context.Context, first uint64, seeds int, bug sim.Bug, verbose bool, keep string, shrink time.Duration) bool {
	began := time.Now()
	all := &total{faults: map[sim.Fault]int{}}
	next := make(chan uint64)
	var players sync.WaitGroup
	for range runtime.GOMAXPROCS(0) { // each seed is one goroutine at a time
		players.Go(func() {
			for seed := range next {
				r := sim.Run(sim.Options{Seed: seed, Bug: bug, Verbose: verbose})
				all.add(r)
				if verbose {
					print("seed", r)
				}
			}
		})
	}
	for seed := first; seed < first+uint64(seeds) && ctx.Err() == nil; seed++ {
		next <- seed
	}
	close(next)
	players.Wait()
	fmt.Printf("%d seeds, %d events, %s of played time, %.1f s\n", all.seeds, all.events, all.simulated.Round(time.Second), time.Since(began).Seconds())
	sum := 0
	for _, kind := range slices.Sorted(keys(all.faults)) {
		fmt.Printf("%8d  %s\n", all.faults[kind], kind)
		sum += all.faults[kind]
	}
	fmt.Printf("%8d  faults, of %d kinds\n", sum, len(all.faults))
	if len(all.failed) == 0 {
		fmt.Println("every promise was kept, in every seed")
		return true
	}
	slices.SortFunc(all.failed, func(a, b sim.Result) int { return int(a.Seed) - int(b.Seed) })
	fmt.Printf("%d seeds broke a promise:\n", len(all.failed))
	for _, r := range all.failed {
		fmt.Printf("  seed %d: %v\n", r.Seed, shortened(r.Breach.Error()))
	}
	shortest := sim.Shrink(sim.Options{Seed: all.failed[0].Seed, Bug: bug}, all.failed[0], shrink)
	print("the shortest story of seed", shortest)
	if keep != "" {
		if err := write(keep, shortest); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	return false
}

func shortened(text string) string { return text[:min(len(text), 300)] }

func keys(m map[sim.Fault]int) func(func(sim.Fault) bool) {
	return func(yield func(sim.Fault) bool) {
		for kind := range m {
			if !yield(kind) {
				return
			}
		}
	}
}

func print(what string, r sim.Result) {
	fmt.Printf("%s %d: %d faults, %d events\n", what, r.Seed, len(r.Script.Calls)+len(r.Script.Timed), r.Events)
	for _, line := range r.Story {
		fmt.Println(line)
	}
}

// write keeps a script where the tests look for it.
func write(dir string, r sim.Result) error {
	content, err := json.MarshalIndent(sim.Kept{Seed: r.Seed, Broke: r.Breach.Error(), Script: r.Script}, "", "  ")
	if err != nil {
		return err
	}
	file := filepath.Join(dir, fmt.Sprintf("seed-%d.json", r.Seed))
	fmt.Printf("kept in %s\n", file)
	return os.WriteFile(file, append(content, '\n'), 0o644)
}
