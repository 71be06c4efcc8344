package main

import (
	"fmt"
	"runtime"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/bench/figures"
)

const (
	decisionSamples = 2000
	// shapes is how many different gangs the backlog has.
	shapes = 64
	// naiveSample is how many of the backlog the naive baseline tries; its time is
	// scaled to all.
	naiveSample = 500
	// busyGPUs of the eight of each node are taken.
	busyGPUs = 4
)

// gangSizes are the numbers of pods of the gangs that come, with how many of each
// are measured.
var gangSizes = []struct{ pods, samples int }{{3, decisionSamples}, {8, 1000}, {64, 300}, {512, 100}}

// newGangs measures the decision alone, in memory: gangs of several sizes on
// clusters of different sizes with different backlogs that do not fit. The
// baseline is the naive scan: on each event every waiting gang is tried again,
// with the same search for places.
func newGangs() error {
	fmt.Println(figures.Header(fmt.Sprintf("Decisions in memory, a new gang (waiting: %d shapes that do not fit)", shapes)))
	fmt.Printf("  %6s %8s %6s %12s %10s %10s %14s %12s\n", "nodes", "waiting", "pods", "decisions/s", "p50", "p99", "naive scan", "times faster")
	for _, nodes := range []int{1000, 5000, 15000} {
		for _, waiting := range []int{0, 10_000, 100_000} {
			d := newDeciding(nodes, waiting, nil)
			naive := d.naive(waiting)
			for _, size := range gangSizes {
				took, err := d.submissions(size.samples, benchSets(size.pods, 1, 1))
				if err != nil {
					return err
				}
				mean := meanOf(took)
				fmt.Printf("  %6d %8d %6d %12.0f %10s %10s %14s %12.0f\n", nodes, waiting, size.pods, float64(time.Second)/float64(mean),
					fine(figures.Quantile(took, 0.50)), fine(figures.Quantile(took, 0.99)), fine(naive+mean), float64(naive+mean)/float64(mean))
			}
		}
	}
	fmt.Println()
	return nil
}

func meanOf(took []time.Duration) time.Duration {
	var sum time.Duration
	for _, t := range took {
		sum += t
	}
	return sum / time.Duration(len(took))
}

// largeDecisions measures those that do more than to place a gang: within a
// topology, to refuse it with a proof, to have others evicted for it.
func largeDecisions() error {
	const nodes = 5000
	fmt.Println(figures.Header(fmt.Sprintf("Other decisions on %d nodes", nodes)))
	show := func(what string, took []time.Duration, err error) error {
		if err == nil {
			fmt.Printf("  %-64s p50 %10s p99 %10s\n", what, fine(figures.Quantile(took, 0.50)), fine(figures.Quantile(took, 0.99)))
		}
		return err
	}
	d := newDeciding(nodes, 0, nil)
	near := benchSets(512, 1, 1)
	near[0].Topology = &workload.Topology{Mode: workload.TopologyRequired, Level: "block", SliceSize: 4, SliceLevel: "rack"}
	took, err := d.submissions(100, near)
	if err := show("512 pods in one block, slices of 4 within racks", took, err); err != nil {
		return err
	}
	took, err = d.refusals(300)
	if err := show("a justified no, of a shape that was not seen before", took, err); err != nil {
		return err
	}
	for _, pods := range []int{1, 3, 64} {
		tree, err := quota.New(quota.Config{ClusterQueues: []quota.ClusterQueue{
			{Name: "queue", Preemption: &quota.Preemption{WithinClusterQueue: quota.LowerPriority}},
		}})
		if err != nil {
			return err
		}
		took, err := newDeciding(nodes, 0, tree).preemptions(50, pods)
		if err := show(fmt.Sprintf("%d of %d running gangs evicted for a gang of %d pods", pods, nodes, pods), took, err); err != nil {
			return err
		}
	}
	fmt.Println()
	return nil
}

// nodeEvents measures one node event with a large backlog, and the memory that
// the backlog takes.
func nodeEvents() error {
	const nodes, waiting = 5000, 100_000
	header := figures.Header(fmt.Sprintf("One node event on %d nodes with %d waiting", nodes, waiting))
	before := heap()
	d := newDeciding(nodes, 0, nil)
	empty := heap()
	d.fill(waiting)
	admission.Decide(d.state, d.now)
	full := heap()
	var took []time.Duration
	for i := range decisionSamples {
		n := benchNode(i % nodes)
		n.Unmanaged = resource.List{resource.CPU: int64(i % 2)} // a little more or less is free
		began := time.Now()
		d.state.SetNode(n)
		plan := admission.Decide(d.state, d.now)
		took = append(took, time.Since(began))
		if len(plan.Admissions) > 0 {
			return fmt.Errorf("a node event admitted %d gangs that do not fit", len(plan.Admissions))
		}
	}
	naive := d.naive(waiting)
	fmt.Printf("%s: p50 %s, p99 %s; naive scan %s\n", header,
		fine(figures.Quantile(took, 0.50)), fine(figures.Quantile(took, 0.99)), fine(naive))
	fmt.Printf("Heap in use: %d nodes %.0f MB, %d waiting %.0f MB more\n\n", nodes, mega(empty-before), waiting, mega(full-empty))
	runtime.KeepAlive(d)
	return nil
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapInuse
}

func mega(bytes uint64) float64 { return float64(bytes) / (1 << 20) }

func fine(d time.Duration) string {
	if d < time.Millisecond {
		return fmt.Sprintf("%.1f us", float64(d.Nanoseconds())/1000)
	}
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}
