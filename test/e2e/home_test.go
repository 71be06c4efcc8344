package e2e

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/test/stack"
)

// observeElsewhere has another cluster report a node with free GPUs, and waits until
// queue-manager knows it.
func (w *world) observeElsewhere(name string, gpus int64) {
	w.t.Helper()
	observed := &event.NodeObserved{
		Version: event.Version{Session: time.Now().UnixNano(), Seq: 1},
		Node: capacity.Node{Cluster: "elsewhere", Name: name, Ready: true, Allocatable: resource.List{
			"cpu": 64_000, "memory": 256 << 30, "nvidia.com/gpu": gpus, resource.Pods: 110,
		}},
	}
	envelope, err := event.New(event.NewID(), "e2e", time.Now(), observed)
	if err == nil {
		err = w.Bus.Publish(w.ctx, event.NodeSubject("elsewhere", name), envelope)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.until("the node of the other cluster is known", func() bool {
		for _, n := range w.knownNodes() {
			if n.Cluster == "elsewhere" && n.Name == name {
				return true
			}
		}
		return false
	})
}

// A RayCluster that was created with kubectl runs in its cluster, or waits for it, while
// another cluster has the GPUs: there is no object to release there.
func TestALabelledRayClusterRunsInItsClusterOrWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("small", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=1")
	w.observeElsewhere("big", 8)
	w.kubectl(labelled(stack.RayCluster("pair", 1, 2), "muster.dev/queue-name", "default"), "create", "-f", "-")
	w.rayObject("rayclusters", "pair", func(u *unstructured.Unstructured) bool {
		return state(u) == "queued" && strings.Contains(u.GetAnnotations()["muster.dev/reason"], "0/1 nodes are available: 1 Insufficient nvidia.com/gpu")
	})
	w.nodes("large", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")
	w.rayObject("rayclusters", "pair", runs)
}
