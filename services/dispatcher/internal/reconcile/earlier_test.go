package reconcile

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/gang"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// TestNothingIsCreatedNextToAnEarlierAttempt: an object waits for the pods and
// RayClusters of attempts before its own, which are removed, and the status names them.
func TestNothingIsCreatedNextToAnEarlierAttempt(t *testing.T) {
	t.Parallel()
	old := gang.Pod{Namespace: "n", Name: "old", UID: "p", Workload: "w", Attempt: 1, Node: "a"}
	elsewhere, over, present := old, old, old
	elsewhere.Namespace, over.Ended, present.Attempt = "other", true, 2
	earlier := kubernetes.Object{Kind: "RayCluster", Namespace: "n", Name: "old", UID: "u", Workload: "w", Attempt: 1}
	for name, c := range map[string]struct {
		attempt  int
		pods     []gang.Pod
		clusters []kubernetes.Object
		left     kubernetes.Left
		waits    bool
		deleted  []string // after the time for pods that nothing deletes
	}{
		"nothing is there":            {attempt: 2},
		"a pod":                       {attempt: 2, pods: []gang.Pod{old}, waits: true, deleted: []string{"old"}},
		"a pod that has ended":        {attempt: 2, pods: []gang.Pod{over}},
		"a pod of another namespace":  {attempt: 2, pods: []gang.Pod{elsewhere}},
		"a pod of this attempt":       {attempt: 2, pods: []gang.Pod{present}, left: kubernetes.Left{Pods: 1, Earliest: 2}},
		"the cache does not show it":  {attempt: 2, left: kubernetes.Left{Pods: 1, Earliest: 1}, waits: true},
		"a RayCluster":                {attempt: 2, clusters: []kubernetes.Object{earlier}, left: kubernetes.Left{Clusters: 1, Earliest: 1}, waits: true, deleted: []string{"old"}},
		"the first has none before":   {attempt: 1, left: kubernetes.Left{Pods: 1, Earliest: 1}},
		"there is no attempt on it":   {attempt: 2, left: kubernetes.Left{Pods: 1}},
		"one of an attempt after it ": {attempt: 2, left: kubernetes.Left{Pods: 1, Earliest: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t)
			p.cluster.pods, p.cluster.clusters, p.cluster.left = c.pods, c.clusters, c.left
			p.Command(&event.GangCommand{
				Workload: "w", Cluster: "c", Attempt: c.attempt, Epoch: 1, State: event.Present, Kind: "RayCluster", Namespace: "n", Name: "r",
				ForceAfter: workload.Duration(time.Minute), Manifest: json.RawMessage(rayCluster),
			})
			if err := p.see(t, 1); err != nil {
				t.Fatal(err)
			}
			if p.status.Created == c.waits {
				t.Fatalf("created: %v, want %v: %+v", p.status.Created, !c.waits, p.status)
			}
			if !c.waits {
				return
			}
			if !strings.Contains(p.status.Message, "of an earlier attempt") {
				t.Errorf("the message is %q", p.status.Message)
			}
			p.clock = p.clock.Add(time.Minute + 1)
			if err := p.see(t, 1); err != nil {
				t.Fatal(err)
			}
			for _, name := range c.deleted {
				if !slices.Contains(p.cluster.deleted, name) {
					t.Errorf("deleted are %v, not %s", p.cluster.deleted, name)
				}
			}
			p.cluster.pods, p.cluster.clusters, p.cluster.left = nil, nil, kubernetes.Left{}
			if err := p.see(t, 1); err != nil {
				t.Fatal(err)
			}
			if !p.status.Created || p.status.Message != "" {
				t.Errorf("once nothing is left it is %+v", p.status)
			}
		})
	}
}

// TestABundleWaitsForItsEarlierAttempt: the objects of the attempt before go first.
func TestABundleWaitsForItsEarlierAttempt(t *testing.T) {
	t.Parallel()
	p := play(t)
	first := wrapped(t, "a", "b")
	p.Command(&first)
	if err := p.see(t, 2); err != nil || !p.status.Created {
		t.Fatalf("attempt 1 is %+v, %v", p.status, err)
	}
	p.cluster.left = kubernetes.Left{Pods: 1, Earliest: 1}
	second := wrapped(t, "a", "b")
	second.Attempt, second.Order = 2, 2
	p.Command(&second)
	if err := p.see(t, 2); err != nil {
		t.Fatal(err)
	}
	if p.status.Created || len(p.cluster.items) > 0 || !slices.Equal(p.cluster.deleted, []string{"b", "a"}) {
		t.Errorf("beside the attempt before it is %+v, deleted are %v", p.status, p.cluster.deleted)
	}
	p.cluster.left = kubernetes.Left{}
	if err := p.see(t, 1); err != nil || !p.status.Created || p.status.Attempt != 2 {
		t.Errorf("once nothing is left it is %+v, %v", p.status, err)
	}
}

const rayCluster = `{"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "r", "namespace": "n"},
	"spec": {"headGroupSpec": {"template": {"spec": {"containers": [{"name": "head", "image": "ray"}]}}}}}`
