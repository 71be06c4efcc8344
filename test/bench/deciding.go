package main

import (
	"fmt"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// deciding is a state under measurement.
type deciding struct {
	state *admission.State
	fleet *placement.Fleet // the same nodes, for the baseline
	now   time.Time
	order int64
}

// newDeciding returns nodes of which half is taken, and a number of gangs that wait and do
// not fit. nil is a tree without quota.
func newDeciding(nodes, waiting int, tree *quota.Tree) *deciding {
	d := &deciding{state: admission.NewState(tree), fleet: placement.NewFleet(), now: time.Unix(1_000_000, 0)}
	for i := range nodes {
		n := benchNode(i)
		d.state.SetNode(n)
		d.fleet.SetNode(n)
		d.fleet.Allocate(d.run(i))
	}
	d.fill(waiting)
	admission.Decide(d.state, d.now)
	return d
}

// run has a gang run on a node.
func (d *deciding) run(node int) (*workload.Workload, []workload.Placement) {
	n := benchNode(node)
	w := &workload.Workload{ID: workload.ID(fmt.Sprintf("running-%d", node)), Queue: "queue", PodSets: benchSets(1, 1, busyGPUs)}
	places := []workload.Placement{{PodSet: "workers", Node: n.Name, Pods: 1}}
	d.state.Start(admission.Started{Workload: w, Order: d.next(), Cluster: n.Cluster, Placements: places, Admitted: d.now})
	return w, places
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
		Labels: map[string]string{
			capacity.HostnameLabel: fmt.Sprintf("node-%05d", i), "rack": fmt.Sprintf("rack-%04d", i/16), "block": fmt.Sprintf("block-%03d", i/256),
		},
		Allocatable: resource.List{resource.CPU: 96_000, resource.Memory: 1 << 40, resource.Pods: 110, "nvidia.com/gpu": 8},
	}
}

func benchSets(pods int, cpus, gpus int64) []workload.PodSet {
	return []workload.PodSet{{Name: "workers", Role: workload.RoleWorker, Count: pods, Template: workload.Template{
		Requests: resource.List{resource.CPU: cpus * 1000, resource.Pods: 1, "nvidia.com/gpu": gpus},
	}}}
}

// submissions submits one gang after the other, each alone.
func (d *deciding) submissions(samples int, sets []workload.PodSet) ([]time.Duration, error) {
	var took []time.Duration
	for range samples {
		w := d.gang(sets, 0)
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

// refusals submits one gang after the other that does not fit, each of a shape
// of its own, so that none is refused because another was.
func (d *deciding) refusals(samples int) ([]time.Duration, error) {
	var took []time.Duration
	for i := range samples {
		w := d.gang(benchSets(3, 1, 8), 0)
		w.Workload.PodSets[0].Template.Requests[resource.Memory] = int64(i + 1)
		began := time.Now()
		d.state.Enqueue(w)
		plan := admission.Decide(d.state, d.now)
		took = append(took, time.Since(began))
		if len(plan.Admissions) != 0 || d.state.Reason(w.Workload.ID).Shortage == nil {
			return nil, fmt.Errorf("a gang that does not fit is not refused with what is short: %+v", plan)
		}
		d.state.Dequeue(w.Workload.ID)
		admission.Decide(d.state, d.now)
	}
	return took, nil
}

// preemptions submits one gang after the other that needs whole nodes, on which
// others of lower priority run; the measure is the decision that has them evicted.
// Then they go, the gang runs and ends, and they come back to their places.
func (d *deciding) preemptions(samples, pods int) ([]time.Duration, error) {
	var took []time.Duration
	for range samples {
		d.now = d.now.Add(time.Minute)
		w := d.gang(benchSets(pods, 1, 8), 1)
		began := time.Now()
		d.state.Enqueue(w)
		plan := admission.Decide(d.state, d.now)
		took = append(took, time.Since(began))
		if len(plan.Evictions) != pods {
			return nil, fmt.Errorf("%d evictions for a gang that needs %d nodes", len(plan.Evictions), pods)
		}
		for _, v := range plan.Evictions {
			d.state.Release(v.Workload)
		}
		if plan := admission.Decide(d.state, d.now); len(plan.Admissions) != 1 {
			return nil, fmt.Errorf("%d admissions after the evictions, want one", len(plan.Admissions))
		}
		d.state.Release(w.Workload.ID)
		for _, v := range plan.Evictions {
			var node int
			if _, err := fmt.Sscanf(string(v.Workload), "running-%d", &node); err != nil {
				return nil, err
			}
			d.run(node)
		}
		admission.Decide(d.state, d.now)
	}
	return took, nil
}

func (d *deciding) gang(sets []workload.PodSet, priority int32) admission.Waiting {
	order := d.next()
	return admission.Waiting{Order: order, Workload: &workload.Workload{
		ID: workload.ID(fmt.Sprintf("gang-%d", order)), Queue: "queue", Priority: priority, PodSets: sets,
	}}
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
