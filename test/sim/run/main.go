// Command run plays Muster from many seeds, prints what it did and, when a promise
// was broken, the shortest story of it. `make sim SEEDS=1000` starts it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"muster.dev/muster/test/sim"
	"muster.dev/muster/test/sim/twin"
)

func main() {
	seeds := flag.Int("seeds", 1000, "how many `seeds`")
	first := flag.Uint64("first", 0, "the first `seed`")
	scaled := flag.Int("scaled", 0, "how many more `seeds`, of those with an autoscaler")
	named := flag.String("bug", "", "a planted `bug` to find, by its name")
	hunting := flag.Bool("hunt", false, "look for each planted bug, or for that of -bug, until a seed finds it, and print which")
	verbose := flag.Bool("verbose", false, "print the whole story of each seed")
	keep := flag.String("keep", "", "`directory` where the script of a failure is kept as a test")
	shrink := flag.Duration("shrink", 2*time.Minute, "how long the shortest story is looked for")
	tables := flag.Bool("sql", false, "write real tables, too, in a Postgres that is started for it, and compare")
	flag.Parse()
	bug, err := bugNamed(*named)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if *hunting {
		if !hunt(ctx, bug, *first, *seeds) {
			stop()
			os.Exit(1)
		}
		return
	}
	var server *twin.Server
	if *tables {
		if server, err = twin.Start(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	all := sim.ScaledSeeds(*scaled)
	for i := range *seeds {
		all = append(all, *first+uint64(i))
	}
	kept := play(ctx, server, all, bug, *verbose, *keep, *shrink)
	if server != nil {
		server.Stop()
	}
	if !kept {
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
	made      map[string]int
	failed    []sim.Result
	compared  sim.Compared
}

func (t *total) add(r sim.Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seeds++
	t.events += r.Events
	t.simulated += r.Simulated
	t.compared.Commits += r.Compared.Commits
	t.compared.Refused += r.Compared.Refused
	t.compared.Looks += r.Compared.Looks
	for kind, count := range r.Faults {
		t.faults[kind] += count
	}
	for name, count := range r.Made {
		t.made[name] += count
	}
	if r.Breach != nil {
		t.failed = append(t.failed, r)
	}
}

// run plays a seed, beside real tables if there is a server.
func run(ctx context.Context, server *twin.Server, o sim.Options) (sim.Result, error) {
	if server == nil {
		return sim.Run(o), nil
	}
	tables, err := server.Tables(ctx)
	if err != nil {
		return sim.Result{}, err
	}
	o.Tables = tables
	return sim.Run(o), tables.Close()
}

func play(ctx context.Context, server *twin.Server, seeds []uint64, bug sim.Bug, verbose bool, keep string, shrink time.Duration) bool {
	began := time.Now()
	all := &total{faults: map[sim.Fault]int{}, made: map[string]int{}}
	next := make(chan uint64)
	var players sync.WaitGroup
	for range runtime.GOMAXPROCS(0) { // each seed is one goroutine at a time
		players.Go(func() {
			for seed := range next {
				r, err := run(ctx, server, sim.Options{Seed: seed, Bug: bug, Verbose: verbose})
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					continue
				}
				all.add(r)
				if verbose {
					printStory("seed", r)
				}
			}
		})
	}
	for _, seed := range seeds {
		if ctx.Err() != nil {
			break
		}
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
	for _, name := range slices.Sorted(maps.Keys(all.made)) {
		fmt.Printf("%8d  %s\n", all.made[name], name)
	}
	if server != nil {
		fmt.Printf("%8d  commits compared with real tables, %d of them refused by both; %d looks at all\n", all.compared.Commits, all.compared.Refused, all.compared.Looks)
	}
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
	printStory("the shortest story of seed", shortest)
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

func printStory(what string, r sim.Result) {
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
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	fmt.Printf("kept in %s\n", file)
	return os.WriteFile(file, append(content, '\n'), 0o644)
}
