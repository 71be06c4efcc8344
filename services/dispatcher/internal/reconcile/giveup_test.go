package reconcile

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/gang"
)

// TestAClusterGivesUpWorkers: the RayCluster is made smaller once, and the pods on the places
// that are to be free are named, no more than go. What its owner has made smaller already, or
// has made small enough, is left alone.
func TestAClusterGivesUpWorkers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		size int
		want []string
	}{
		"four of six go": {6, []string{"map[workers:2] map[workers:[a1 a2 b1]]"}},
		"one goes":       {3, []string{"map[workers:2] map[workers:[a1]]"}},
		"small enough":   {2, nil},
		"unknown":        {-1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t)
			object := rayOf("w", 1)
			if object.Sizes = map[string]int{}; c.size >= 0 {
				object.Sizes["workers"] = c.size
			}
			object.Keeps = object.Sizes
			p.cluster.objects["r"] = object
			for _, pod := range []gang.Pod{
				{Name: "a2", Node: "a"}, {Name: "a1", Node: "a"}, {Name: "a3", Node: "a"}, {Name: "b1", Node: "b"}, {Name: "b0", Node: "b", Deleting: true}, {Name: "c1", Node: "c"},
			} {
				pod.Namespace, pod.Workload, pod.Attempt, pod.PodSet, pod.UID = "n", "w", 1, "workers", pod.Name
				p.cluster.pods = append(p.cluster.pods, pod)
			}
			command := rayCommand(1)
			command.Created = true
			command.GiveUp = &event.GiveUp{Sizes: map[string]int{"workers": 2}, Leave: []workload.Placement{
				{PodSet: "workers", Node: "a", Pods: 2}, {PodSet: "workers", Node: "b", Pods: 1}, {PodSet: "head", Node: "c", Pods: 1},
			}}
			p.Command(&command)
			if err := p.see(t, 3); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, p.cluster.gaveUp); diff != "" {
				t.Errorf("given up (-want +got):\n%s", diff)
			}
		})
	}
}
