package main

import (
	"fmt"
	"runtime"
	"time"

	"muster.dev/muster/pkg/admission"
	"muster.dev/muster/pkg/capacity"
	"muster.dev/muster/pkg/placement"
	"muster.dev/muster/pkg/resource"
	"muster.dev/muster/pkg/workload"
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

// decisions measures the decision alone, in memory: gangs of three pods on
// clusters of different sizes with different backlogs that do not fit. The
// baseline is the naive scan: on each event every waiting gang is tried again,
// with the same search for places.
func decisions() error {
	fmt.Printf("Decisions in memory, a new gang of 3 pods, %d samples (waiting: %d shapes that do not fit):\n", decisionSamples, shapes)
	fmt.Printf("  %6s %8s %12s %10s %10s %14s %12s\n", "nodes", "waiting", "decisions/s", "p50", "p99", "naive scan", "times faster")
	for _, nodes := range []int{1000, 5000, 15000} {
		for _, waiting := range []int{0, 10_000, 100_000} {
			d := newDeciding(nodes, waiting)
			took, err := d.submissions()
			if err != nil {
				return err
			}
			var sum time.Duration
			for _, t := range took {
				sum += t
			}
			mean := sum / time.Duration(len(took))
			naive := d.naive(waiting) + mean
			fmt.Printf("  %6d %8d %12.0f %10s %10s %14s %12.0f\n", nodes, waiting, float64(time.Second)/float64(mean),
				fine(quantile(took, 0.50)), fine(quantile(took, 0.99)), fine(naive), float64(naive)/float64(mean))
		}
	}
	return nodeEvents()
}

// nodeEvents measures one node event with a large backlog, and the memory that
// the backlog takes.
func nodeEvents() error {
	const nodes, waiting = 5000, 100_000
	before := heap()
	d := newDeciding(nodes, 0)
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
	fmt.Printf("\nOne node event on %d nodes with %d waiting: p50 %s, p99 %s; naive scan %s\n", nodes, waiting,
		fine(quantile(took, 0.50)), fine(quantile(took, 0.99)), fine(naive))
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

// deciding is a state under measurement.
type deciding struct {
	state *admission.State
	fleet *placement.Fleet // the same nodes, for the baseline
	now   time.Time
	order int64
}

func newDeciding(nodes, waiting int) *deciding {
	d := &deciding{state: admission.NewState(nil), fleet: placement.NewFleet(), now: time.Unix(1_000_000, 0)}
	for i := range nodes {
		n := benchNode(i)
		d.state.SetNode(n)
		d.fleet.SetNode(n)
		w := &workload.Workload{
			ID: workload.ID(fmt.Sprintf("running-%d", i)), Queue: "queue",
			PodSets: benchSets(1, 1, busyGPUs),
		}
		places := []workload.Placement{{PodSet: "workers", Node: n.Name, Pods: 1}}
		d.state.Start(admission.Started{Workload: w, Order: d.next(), Cluster: n.Cluster, Placements: places, Admitted: d.now})
		d.fleet.Take(w, places)
	}
	d.fill(waiting)
	admission.Decide(d.state, d.now)
	return d
}

func (d *deciding) next() int64 {
	d.order++
	return d.order
}

// fill adds gangs that do not fit: more GPUs per pod than are free on any node.
func (d *deciding) fill(waiting int) {
	for i := range waiting {
		d.state.Enqueue(admission.Waiting{Order: d.next(), Workload: &workload.Workload{
			ID: workload.ID(fmt.Sprintf("waiting-%d", i)), Queue: "queue", PodSets: benchSets(3, int64(i%shapes)+1, 8),
		}})
	}
}

func benchNode(i int) capacity.Node {
	return capacity.Node{
		Cluster: "c", Name: fmt.Sprintf("node-%05d", i), Ready: true,
		Labels:      map[string]string{"kubernetes.io/hostname": fmt.Sprintf("node-%05d", i)},
		Allocatable: resource.List{resource.CPU: 96_000, resource.Memory: 1 << 40, resource.Pods: 110, "nvidia.com/gpu": 8},
	}
}

func benchSets(pods int, cpus, gpus int64) []workload.PodSet {
	return []workload.PodSet{{Name: "workers", Role: workload.RoleWorker, Count: pods, Template: workload.Template{
		Requests: resource.List{resource.CPU: cpus * 1000, resource.Pods: 1, "nvidia.com/gpu": gpus},
	}}}
}

// submissions submits one small gang after the other, each alone.
func (d *deciding) submissions() ([]time.Duration, error) {
	var took []time.Duration
	for i := range decisionSamples {
		w := admission.Waiting{Order: d.next(), Workload: &workload.Workload{
			ID: workload.ID(fmt.Sprintf("new-%d", i)), Queue: "queue", PodSets: benchSets(3, 1, 1),
		}}
		began := time.Now()
		d.state.Enqueue(w)
		plan := admission.Decide(d.state, d.now)
		took = append(took, time.Since(began))
		if len(plan.Admissions) != 1 {
			return nil, fmt.Errorf("%d admissions of one gang that fits", len(plan.Admissions))
		}
		d.state.Release(w.Workload.ID)
		admission.Decide(d.state, d.now) // what the release wakes is not part of the measure
	}
	return took, nil
}

// naive is how long it takes to try all that wait on the same nodes.
func (d *deciding) naive(waiting int) time.Duration {
	tried := min(waiting, naiveSample)
	if tried == 0 {
		return 0
	}
	const budget = 20_000
	began := time.Now()
	for i := range tried {
		d.fleet.Solve(&workload.Workload{PodSets: benchSets(3, int64(i%shapes)+1, 8)}, budget)
	}
	return time.Since(began) * time.Duration(waiting) / time.Duration(tried)
}
