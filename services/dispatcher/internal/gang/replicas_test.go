package gang_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/gang"
)

// TestReplicasAreNeverSplit: replicas of several hosts are lost and made again, many at a
// time, as KubeRay does it: all pods of a broken one are deleted, and those of its
// replacement appear one after the other, before the deleted ones have gone or after. The
// dispatcher looks at any moment. Each replica that is whole is in one domain, no place has
// two pods, and in the end all pods have a place.
func TestReplicasAreNeverSplit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newSliceWorld(t)
		for range rapid.IntRange(1, 4).Draw(t, "rounds") {
			broken := rapid.IntRange(1, len(w.live)).Draw(t, "broken")
			for range broken {
				w.breakOne(t)
			}
			for range broken {
				w.makeOne(t)
			}
			for w.gone(t) {
				w.look(t)
			}
			w.look(t)
			for name, pods := range w.byReplica() {
				for _, p := range pods {
					if p.Gated {
						t.Fatalf("pod %s of replica %s has no place: %v", p.Name, name, w.pods)
					}
				}
			}
		}
	})
}

// sliceWorld is a gang that runs, with one slice to a replica.
type sliceWorld struct {
	command *event.GangCommand
	hosts   int
	domains map[string]string // by node
	pods    []gang.Pod
	live    []string // replicas that are not broken
	made    int
}

func newSliceWorld(t *rapid.T) *sliceWorld {
	w := &sliceWorld{hosts: rapid.IntRange(2, 3).Draw(t, "hosts"), domains: map[string]string{"head": ""}}
	replicas := 0
	perSlice := rapid.IntRange(1, 2).Draw(t, "replicas of a slice")
	var nodes []workload.Placement
	for d := range rapid.IntRange(1, 3).Draw(t, "domains") {
		inDomain := perSlice * rapid.IntRange(1, 2).Draw(t, "slices of a domain")
		replicas += inDomain
		for n := range inDomain * w.hosts {
			p := workload.Placement{PodSet: "workers", Node: fmt.Sprintf("%d-%d", d, n), Pods: 1, Domain: fmt.Sprint(d)}
			nodes, w.domains[p.Node] = append(nodes, p), p.Domain
		}
	}
	w.command = &event.GangCommand{Attempt: 2,
		PodSets: []workload.PodSet{
			{Name: "headgroup", Role: workload.RoleHead, Count: 1},
			{Name: "workers", Role: workload.RoleWorker, Count: replicas * w.hosts, Topology: &workload.Topology{SliceLevel: "pool", SliceSize: w.hosts * perSlice}},
		},
		Placements: append(rapid.Permutation(nodes).Draw(t, "places"), workload.Placement{PodSet: "headgroup", Node: "head", Pods: 1}),
	}
	w.pods = []gang.Pod{pinned(pod("head", "headgroup"), "head")}
	for range replicas {
		w.makeOne(t)
	}
	w.look(t)
	return w
}

// makeOne has KubeRay make a replica, whose name is drawn.
func (w *sliceWorld) makeOne(t *rapid.T) {
	w.made++
	name := fmt.Sprintf("%c%d", rapid.RuneFrom([]rune("abc")).Draw(t, "name"), w.made)
	w.live = append(w.live, name)
	for host := range w.hosts {
		p := pod(fmt.Sprintf("%s-%d", name, host), "workers")
		p.UID, p.Replica = p.Name, name
		w.pods = append(w.pods, p)
		w.mayLook(t)
		if rapid.Bool().Draw(t, "one goes") {
			w.gone(t)
		}
	}
}

// breakOne has a replica deleted: its pods are marked one after the other.
func (w *sliceWorld) breakOne(t *rapid.T) {
	i := rapid.IntRange(0, len(w.live)-1).Draw(t, "which")
	name := w.live[i]
	w.live = slices.Delete(w.live, i, i+1)
	for i := range w.pods {
		if w.pods[i].Replica == name {
			w.pods[i].Deleting = true
			w.mayLook(t)
		}
	}
}

// gone ends a pod that is being deleted; false when there is none.
func (w *sliceWorld) gone(t *rapid.T) bool {
	var leaving []int
	for i, p := range w.pods {
		if p.Deleting {
			leaving = append(leaving, i)
		}
	}
	if len(leaving) == 0 {
		return false
	}
	i := rapid.SampledFrom(leaving).Draw(t, "gone")
	w.pods = slices.Delete(w.pods, i, i+1)
	return true
}

func (w *sliceWorld) mayLook(t *rapid.T) {
	if rapid.Bool().Draw(t, "look") {
		w.look(t)
	}
}

// look has the dispatcher pin what it may, and checks the outcome.
func (w *sliceWorld) look(t *rapid.T) {
	for _, pin := range gang.Pins(w.command, w.pods, nil, nil) {
		for i := range w.pods {
			if w.pods[i].Name == pin.Pod.Name {
				w.pods[i].Gated, w.pods[i].Hostname = false, pin.Hostname
			}
		}
	}
	used := map[string]string{}
	for name, pods := range w.byReplica() {
		home := ""
		for _, p := range pods {
			if p.Gated {
				continue
			}
			if other := used[p.Hostname]; other != "" {
				t.Fatalf("%s and %s are both sent to %s", other, p.Name, p.Hostname)
			}
			used[p.Hostname] = p.Name
			if home != "" && home != w.domains[p.Hostname] {
				t.Fatalf("replica %s is in the domains %s and %s: %v", name, home, w.domains[p.Hostname], w.pods)
			}
			home = w.domains[p.Hostname]
		}
	}
}

func (w *sliceWorld) byReplica() map[string][]gang.Pod {
	replicas := map[string][]gang.Pod{}
	for _, p := range w.pods {
		if p.Replica != "" {
			replicas[p.Replica] = append(replicas[p.Replica], p)
		}
	}
	return replicas
}
