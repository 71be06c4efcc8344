package reconcile

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/gang"
)

// placed is the RayCluster n/r with two workers on the nodes a and b.
func placed() event.GangCommand {
	command := rayCommand(1)
	command.PodSets = []workload.PodSet{{Name: "g", Role: workload.RoleWorker, Count: 2}}
	command.Placements = []workload.Placement{{PodSet: "g", Node: "a", Pods: 1}, {PodSet: "g", Node: "b", Pods: 1}}
	return command
}

// workers are gated pods of the RayCluster.
func workers(count int) (pods []gang.Pod) {
	for i := range count {
		name := fmt.Sprintf("p%d", i)
		pods = append(pods, gang.Pod{
			Namespace: "n", Name: name, UID: name, Cluster: "c", Workload: "w", Attempt: 1, PodSet: "g", Gated: true,
			Controller: gang.Controller{Kind: "RayCluster", Name: "r", UID: "uid-r"},
		})
	}
	return pods
}

// TestPlace: pods go to their places as they appear, each to its own.
func TestPlace(t *testing.T) {
	t.Parallel()
	both := map[string]string{"p0": "a", "p1": "b"}
	for name, c := range map[string]struct {
		pods    []gang.Pod
		set     func(*cluster, *event.GangCommand)
		want    map[string]string
		deleted []string
	}{
		"one is missing":      {pods: workers(1), want: map[string]string{"p0": "a"}},
		"all are to exist":    {pods: workers(1), set: func(_ *cluster, d *event.GangCommand) { d.Whole = true }},
		"all are there":       {pods: workers(2), want: both},
		"one more than asked": {pods: workers(3), want: both},
		"the cache lags":      {pods: workers(2), set: func(c *cluster, _ *event.GangCommand) { c.frozen = true }, want: both},
		"trusted placement":   {pods: workers(2), set: func(_ *cluster, d *event.GangCommand) { d.Trusted = true }},
		"of another RayCluster": {pods: workers(2), set: func(c *cluster, _ *event.GangCommand) {
			c.pods[1].Controller.UID = "another"
		}, want: map[string]string{"p0": "a"}},
		"one was lost and its place, too": {pods: workers(2), set: func(c *cluster, d *event.GangCommand) {
			c.pods[0].Gated, c.pods[0].Node = false, "lost"
			d.Placements = []workload.Placement{{PodSet: "g", Node: "b", Pods: 1}, {PodSet: "g", Node: "d", Pods: 1}}
		}, want: map[string]string{"p1": "b"}, deleted: []string{"p0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t)
			command := placed()
			p.cluster.pods = slices.Clone(c.pods)
			if c.set != nil {
				c.set(p.cluster, &command)
			}
			p.Command(&command)
			if err := p.see(t, 2); err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(p.cluster.pinned, c.want) || !slices.Equal(p.cluster.deleted, c.deleted) {
				t.Errorf("pinned are %v and deleted %v, want %v and %v", p.cluster.pinned, p.cluster.deleted, c.want, c.deleted)
			}
			before := maps.Clone(p.cluster.pinned)
			if err := p.see(t, 2); err != nil || !maps.Equal(p.cluster.pinned, before) {
				t.Errorf("later looks pin %v, %v; want %v", p.cluster.pinned, err, before)
			}
		})
	}
}

// TestPlacesOfPinnedPods: a pod that the cache still shows gated has its place all the
// same, and its replacement gets the one that is free.
func TestPlacesOfPinnedPods(t *testing.T) {
	t.Parallel()
	p := play(t)
	command := placed()
	p.cluster.pods, p.cluster.frozen = workers(2), true
	p.Command(&command)
	if err := p.see(t, 2); err != nil || len(p.cluster.pinned) != 2 {
		t.Fatalf("pinned are %v, %v; want both", p.cluster.pinned, err)
	}
	replacement := p.cluster.pods[1]
	replacement.Name, replacement.UID = "first in order", "first in order"
	p.cluster.pods[1] = replacement
	if err := p.see(t, 1); err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"p0": "a", "p1": "b", "first in order": "b"}; !maps.Equal(p.cluster.pinned, want) {
		t.Errorf("pinned are %v, want %v", p.cluster.pinned, want)
	}
}

// TestCleanupPodIsPinned: while an object is being deleted, the pod that cleans up after
// the head gets the head's place. KubeRay keeps the object until that pod has ended.
func TestCleanupPodIsPinned(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]event.GangCommand{"a Ray object": placed(), "an AppWrapper": placedWrapped(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t)
			p.cluster.objects["r"], p.cluster.items[thingB] = rayOf("w", 1), itemOf("w", 1)
			p.cluster.objects["r"].Deleting, p.cluster.items[thingB].Deleting = true, true
			p.cluster.pods = workers(1)
			p.cluster.pods[0].Cleanup, p.cluster.pods[0].Controller.Kind = true, "Job"
			command.State = event.Absent
			p.Command(&command)
			if err := p.see(t, 1); err != nil {
				t.Fatal(err)
			}
			if want := map[string]string{"p0": "a"}; !maps.Equal(p.cluster.pinned, want) {
				t.Errorf("pinned are %v, want %v", p.cluster.pinned, want)
			}
		})
	}
}

// TestYield: places that were given up are freed when no pod is sent to them any more.
func TestYield(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set     func(*cluster, *event.GangCommand)
		yielded bool
	}{
		"no pod is on them": {yielded: true},
		"a pod is on them":  {set: func(c *cluster, _ *event.GangCommand) { c.pods[1].Gated, c.pods[1].Node = false, "b" }},
		"trusted placement": {set: func(_ *cluster, d *event.GangCommand) { d.Trusted = true }, yielded: true},
		"a pin fails": {set: func(c *cluster, _ *event.GangCommand) {
			c.pods[0].Gated, c.pods[1].Gated = true, false
			c.pods[1].Node = "b"
			c.answers["pin p0"] = errSilent
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t)
			command := placed()
			command.Placements, command.Yield = command.Placements[:1], "1/2"
			p.cluster.pods = workers(2)
			p.cluster.pods[0].Gated, p.cluster.pods[0].Node = false, "a"
			p.cluster.pods[1].Ended = true
			if c.set != nil {
				p.cluster.pods[1].Ended = false
				c.set(p.cluster, &command)
			}
			p.Command(&command)
			_ = p.see(t, 2)
			if got := p.status.Yielded == command.Yield; got != c.yielded {
				t.Errorf("yielded is %v, want %v: %+v", got, c.yielded, p.status)
			}
		})
	}
}
