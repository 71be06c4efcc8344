// Command decisions measures how fast package placement answers: for gangs of
// several sizes on fleets of several sizes, on nodes that are in use and change
// all the time. With -clusters it measures the choice among clusters instead. It uses one
// core and neither a database nor a cluster. What it prints goes into docs/performance.md.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/spec/workload"
)

func main() {
	clusters := flag.Bool("clusters", false, "compare 20 clusters of 1,000 nodes with one of 20,000")
	gangs := flag.Int("gangs", 10_000, "with -clusters, `how many` gangs are decided on")
	flag.Parse()
	if *clusters {
		if err := compareClusters(*gangs); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	for _, nodes := range []int{1000, 5000, 15_000} {
		before := heap()
		s := newSite(nodes)
		fmt.Printf("\n%d nodes, %.0f %% of the GPUs in use, %.1f MB of heap\n", nodes, 100*s.inUse(), float64(heap()-before)/1e6)
		fmt.Printf("  %-34s %10s %10s %12s   %s\n", "gang", "p50", "p99", "decisions/s", "answers")
		for _, c := range []struct {
			name string
			gang func(*rand.Rand) *workload.Workload
		}{
			{"3 pods", func(r *rand.Rand) *workload.Workload { return gang(r, 3) }},
			{"8 pods", func(r *rand.Rand) *workload.Workload { return gang(r, 8) }},
			{"64 pods", func(r *rand.Rand) *workload.Workload { return gang(r, 64) }},
			{"512 pods", func(r *rand.Rand) *workload.Workload { return gang(r, 512) }},
			{"512 pods, racks preferred", func(r *rand.Rand) *workload.Workload {
				return near(gang(r, 513), workload.Topology{Mode: workload.TopologyPreferred, Level: "rack"})
			}},
			{"257 pods, one block, slices in racks", func(r *rand.Rand) *workload.Workload {
				return near(gang(r, 257), workload.Topology{Mode: workload.TopologyRequired, Level: "block", SliceSize: 4, SliceLevel: "rack"})
			}},
			{"more than there is", func(r *rand.Rand) *workload.Workload { return gang(r, 8*nodes) }},
			{"mixed, more than there is", func(r *rand.Rand) *workload.Workload { return mixed(r, nodes) }},
		} {
			s.measure(c.name, c.gang)
		}
		s.events(1000)
	}
}

// heap returns the bytes in use.
func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// measure decides on gangs for a while; between two of them a node changes.
func (s *site) measure(name string, draw func(*rand.Rand) *workload.Workload) {
	const least, most = 30, 3000
	var times []time.Duration
	answers := map[placement.Outcome]int{}
	for begun := time.Now(); len(times) < least || len(times) < most && time.Since(begun) < time.Second; {
		s.change()
		w := draw(s.random)
		start := time.Now()
		verdict := s.fleet.Solve(w, placement.Budget)
		times = append(times, time.Since(start))
		answers[verdict.Outcome]++
		s.fleet.Allocate(w, verdict.Placements)
		s.fleet.Release(w, verdict.Placements)
	}
	sum := time.Duration(0)
	for _, t := range times {
		sum += t
	}
	slices.Sort(times)
	fmt.Printf("  %-34s %10s %10s %12.0f   %v\n", name, micros(times[len(times)/2]), micros(times[len(times)*99/100]),
		float64(len(times))/sum.Seconds(), answers)
}

// events adds 100,000 signatures that do not fit to the unschedulable set, and measures
// what a change of a node and the question which may fit now cost.
func (s *site) events(kinds int) {
	before := heap()
	for kind := range kinds {
		w := gang(s.random, 8*len(s.nodes))
		w.PodSets[1].Template.Requests["memory"] += int64(kind)
		verdict := s.fleet.Solve(w, placement.Budget)
		for i := range 100_000 / kinds {
			more := *w
			more.PodSets = slices.Clone(w.PodSets)
			more.PodSets[1].Count += i
			s.fleet.AddUnschedulable(fmt.Sprint(kind, "/", i), &more, verdict)
		}
	}
	used := heap() - before
	var times []time.Duration
	requeued := 0
	for range 2000 {
		start := time.Now()
		s.change()
		requeued += len(s.fleet.Requeued())
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	fmt.Printf("  one node event, 100,000 signatures of %d requests that do not fit (%.0f MB): p50 %s, p99 %s, %d requeued\n",
		kinds, float64(used)/1e6, micros(times[len(times)/2]), micros(times[len(times)*99/100]), requeued)
}

func micros(d time.Duration) string {
	return fmt.Sprintf("%.3f ms", float64(d)/float64(time.Millisecond))
}
