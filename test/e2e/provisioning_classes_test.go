package e2e

import (
	"fmt"
	"strings"
	"testing"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

// The classes of Cluster Autoscaler. No other test has pools of them.
const (
	checkCapacity    = "check-capacity.autoscaling.x-k8s.io"
	bestEffortAtomic = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
)

// ownNodes keeps the pods of a manifest to the nodes of this stack: the autoscaler sees those
// of all tests that run at the same time.
func (w *world) ownNodes(manifest string) []byte {
	w.t.Helper()
	selector := fmt.Sprintf(`"nodeSelector":{"test.muster.dev/pool":%q},`, w.Pool)
	changed := strings.ReplaceAll(manifest, `"containers"`, selector+`"containers"`)
	if changed == manifest {
		w.t.Fatalf("the manifest has no containers: %s", manifest)
	}
	return []byte(changed)
}

// The class check-capacity adds no node: the gang waits until nodes come by other means.
func TestAGangWhoseCapacityIsCheckedWaitsForOtherNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("cpu", 1, "cpu=8", "memory=32Gi")
	w.pool(checkCapacity)
	w.asksForNodes(checkCapacity, "")
	id := w.publish("user-queue", "", w.ownNodes(stack.RayCluster("checked", 2, 1)))
	request := w.asked(1)
	w.refused(request.GetName(), "Capacity is not found, CA will try to find it later.")
	w.waits(id, workload.ReasonProvisioning)
	w.nothingOf(id)
	w.nodes("own", 2, "cpu=8", "memory=32Gi", "nvidia.com/gpu=1")
	w.reaches(id, workload.Running)
	w.asPlanned(id)
	if nodes := w.poolNodes(); nodes != 0 {
		t.Errorf("the pool has %d nodes, want none", nodes)
	}
	w.cancel(id)
	w.released(id)
	w.nothingAsked()
}

// A request of the class best-effort-atomic-scale-up is Provisioned before its nodes are
// there. One of them never comes: no pod of the gang exists until it has a place elsewhere.
func TestAGangWaitsForNodesThatItsRequestPromised(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("cpu", 1, "cpu=8", "memory=32Gi")
	w.pool(bestEffortAtomic, "--delay", "1s", "--missing", "1")
	w.asksForNodes(bestEffortAtomic, "")
	id := w.publish("user-queue", "", w.ownNodes(stack.RayCluster("promised", 2, 1)))
	request := w.asked(1)
	w.refused(request.GetName(), "all nodes of the request are ordered")
	w.waits(id, workload.ReasonFit)
	w.until("the node that came is known", func() bool { return w.poolNodes() == 1 && w.knowsPoolNodes() == 1 })
	w.nothingOf(id)
	w.nodes("own", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=1")
	w.reaches(id, workload.Running)
	w.asPlanned(id)
	w.cancel(id)
	w.released(id)
	w.nothingAsked()
}
