package e2e

import (
	"slices"
	"testing"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

// A gang shows itself to an autoscaler that sees pending pods only. The autoscaler places them on
// what is free first, so two nodes come for three pods. Nothing of the gang exists, and no other
// gang shows itself, until every pod has a place, also when services are restarted meanwhile.
func TestAGangShowsItselfToAnAutoscalerThatSeesPodsOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("own", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=1")
	w.pool(w.ownClass(), "--pending", "--stock", "1")
	w.showsGangs(600, "")
	id := w.publish("user-queue", "", w.ownNodes(stack.RayCluster("shown", 3, 1)))
	w.showsAlone(id, 3)
	next := w.publish("user-queue", "", w.ownNodes(stack.RayCluster("next", 4, 1)))
	hasInOrder(t, w.waits(next, workload.ReasonFit).Message, "it is shown as placeholder pods when no other gang is in cluster")
	behind := w.publish("user-queue", "", w.ownNodes(stack.RayCluster("behind", 1, 1)))
	hasInOrder(t, w.waits(behind, workload.ReasonBehindHead).Message, "its places are kept for a gang before it that is shown there")
	w.until("the one node that there is has come", func() bool { return w.poolNodes() == 1 && w.knowsPoolNodes() == 1 })
	hasInOrder(t, w.waits(id, workload.ReasonFit).Message, "it is shown as placeholder pods in cluster .*, but the nodes do not hold all pods")
	w.nothingOf(id)

	_, before := w.shown()
	for _, service := range []string{stack.QueueManager, stack.Dispatcher} {
		if err := w.StopService(service); err != nil {
			t.Fatal(err)
		}
		if err := w.StartService(w.ctx, service); err != nil {
			t.Fatal(err)
		}
	}
	w.showsAlone(id, 3)
	if _, after := w.shown(); !slices.Equal(before, after) {
		t.Errorf("after the restarts there are other pods: %v, want %v", after, before)
	}

	w.setPool("--stock", "2")
	w.reaches(id, workload.Running)
	w.asPlanned(id)
	if nodes := w.poolNodes(); nodes != 2 {
		t.Errorf("the pool has %d nodes, want 2", nodes)
	}
	w.showsAlone(next, 4)
	w.nothingOf(behind)
	w.cancel(behind)
	w.cancel(next)
	w.reaches(next, workload.Cancelled)
	w.nothingShown()
	w.cancel(id)
	w.released(id)
}

// A gang for which no nodes come takes its pods back when its time is over, and the next gang
// has its turn. It waits on.
func TestAGangThatIsShownInVainRetreats(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("cpu", 1, "cpu=8", "memory=32Gi")
	w.pool(w.ownClass(), "--pending", "--stock", "0")
	w.showsGangs(20, `,"retryStrategy":{"backoffBaseSeconds":600}`)
	large := w.publish("user-queue", "", w.ownNodes(stack.RayCluster("large", 4, 1)))
	w.showsAlone(large, 4)
	w.showsGangs(600, `,"retryStrategy":{"backoffBaseSeconds":600}`) // of the next turn: its node comes when the machine gets to it
	small := w.publish("user-queue", "", w.ownNodes(stack.RayCluster("small", 1, 1)))
	hasInOrder(t, w.waits(large, workload.ReasonBackoff).Message, "nodes are not asked for again before", "placeholder pods .* were shown in cluster .* since")
	w.showsAlone(small, 1)
	w.setPool("--stock", "1")
	w.reaches(small, workload.Running)
	w.nothingShown()
	w.nothingOf(large)
	w.cancel(small)
	w.released(small)
	w.cancel(large)
	w.reaches(large, workload.Cancelled)
}
