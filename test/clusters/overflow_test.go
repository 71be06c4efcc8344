package clusters

import (
	"testing"

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
