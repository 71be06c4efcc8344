package clusters

import (
	"testing"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/test/stack"
)

// Gangs that come over NATS fill one cluster and go to the other one when it is full. One
// that fits into neither waits, and starts in the cluster that has room first.
func TestGangsOverflowToTheOtherCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stack.Options{})
	w.nodes(1, 2, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")
	a := w.submit(stack.RayCluster("a", 1, 2))
	w.runsIn(a, 1, w.Pool)
	b := w.submit(stack.RayCluster("b", 2, 2))
	w.runsIn(b, 1, w.second.Name)
	c := w.submit(stack.RayCluster("c", 2, 2))
	w.waits(c, "Insufficient nvidia.com/gpu")
	w.cancel(b)
	w.runsIn(c, 1, w.second.Name)
}

// Gangs fill three clusters, the cheapest first. The gangs of one that is drained go to the
// cheapest with room, and all gangs run in the end, each in one cluster.
func TestGangsFillThreeClusters(t *testing.T) {
	t.Parallel()
	w := newWorldOfThree(t, stack.Options{})
	w.apply(described(w.Pool, "3", "reserved"), described(w.second.Name, "1", "spot"), described(w.third.Name, "2", "spot"))
	node := []string{"cpu=8", "memory=32Gi", "nvidia.com/gpu=2"}
	if err := w.third.AddNodes(t.Context(), "gpu", 1, node...); err != nil {
		t.Fatal(err)
	}
	w.nodes(2, 1, node...)
	w.until("the node of the third cluster is known", func() bool { return w.states()[w.third.Name] == query.ClusterReady })
	a := w.submit(stack.RayCluster("a", 1, 2))
	w.runsIn(a, 1, w.second.Name)
	b := w.submit(stack.RayCluster("b", 1, 2))
	w.runsIn(b, 1, w.third.Name)
	c := w.submit(stack.RayCluster("c", 1, 2))
	w.runsIn(c, 1, w.Pool)
	w.cancel(b)
	w.until("the third cluster is free", func() bool { return len(podsOf(t, w.third.Kube, b)) == 0 })
	w.order(query.HoldRequest{Cluster: w.second.Name, Drain: true, Why: "it goes back"})
	w.runsIn(a, 2, w.third.Name)
	d := w.submit(stack.RayCluster("d", 1, 2))
	w.runsIn(d, 1, w.Pool)
	w.until("the second cluster is drained", func() bool { return w.states()[w.second.Name] == query.ClusterDrained })
	w.runsIn(c, 1, w.Pool)
}
