package e2e

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

// The guide, step by step: a RayJob that needs a GPU, on a pool of no nodes. It is suspended
// and asks; it runs when the node is there, on that node. When it is deleted, nothing is left of the request.
func TestSeedsRayJobAsksForNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("cpu", 1, "cpu=8", "memory=32Gi")
	w.pool(seedClass, "--stock", "0")
	w.asksForNodes(seedClass, "")
	job := strings.Replace(textClassifier(t, "user-queue"), "job-duration: 3s", "job-duration: 1h", 1)
	created := w.kubectl(job, "create", "-f", "-")
	name := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(created), "rayjob.ray.io/"), " created")

	request := w.asked(1)
	w.wantAsked(request, seedClass, map[string]int64{"ray-head": 1})
	w.refused(request.GetName(), "has room for 0 more nodes")
	hasInOrder(t, w.kubectl("", "get", "provisioningrequest"), "NAME +ACCEPTED +PROVISIONED +FAILED +AGE", "rayjob-"+name+"-[0-9a-f]{5}-rayjob-gpu-1 +True +False +False")
	w.rayObject("rayjobs", name, func(u *unstructured.Unstructured) bool {
		status, _, _ := unstructured.NestedString(u.Object, "status", "jobDeploymentStatus")
		return status == "Suspended" && state(u) == "queued" && strings.Contains(u.GetAnnotations()["muster.dev/reason"], "nodes for 1 of headgroup pods are asked for")
	})
	hasInOrder(t, w.kubectl("", "get", "rayjob", name, "-o", "yaml"), "suspend: true", "jobDeploymentStatus: Suspended")
	if pods := w.kubectl("", "get", "pods"); !strings.Contains(pods, "No resources found") || w.poolNodes() > 0 {
		t.Errorf("while it waits there are %d nodes in the pool, and pods:\n%s", w.poolNodes(), pods)
	}

	w.setPool("--stock", "9")
	w.rayObject("rayjobs", name, runs)
	hasInOrder(t, w.kubectl("", "get", "provisioningrequest"), "-rayjob-gpu-1 +True +True +False")
	if nodes := w.poolNodes(); nodes != 1 {
		t.Errorf("the pool has %d nodes, want 1", nodes)
	}
	hasInOrder(t, w.kubectl("", "get", "nodes"), w.NodeName("l4", 0)+" +Ready")
	w.consumes(request.GetName(), seedClass, "ray-head", 1)
	w.kubectl("", "delete", "rayjob", name)
	w.nothingAsked()
}

// A gang asks for the pods that lack a place, and the pool adds all nodes or none.
func TestAGangAsksForTheMissingPodsOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("own", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=1")
	w.pool(w.ownClass(), "--stock", "1")
	w.asksForNodes(w.ownClass(), "")
	id := w.publish("user-queue", "", []byte(stack.RayCluster("three", 3, 1)))
	request := w.asked(1)
	w.wantAsked(request, w.ownClass(), map[string]int64{"ray-worker": 2})
	w.refused(request.GetName(), "has room for 1 more nodes, and the request needs 2")
	w.waits(id, workload.ReasonProvisioning)
	w.nothingOf(id)
	if nodes := w.poolNodes(); nodes > 0 {
		t.Errorf("%d nodes were added for a part of the gang", nodes)
	}
	w.setPool("--stock", "2")
	w.reaches(id, workload.Running)
	w.asPlanned(id)
	if nodes := w.poolNodes(); nodes != 2 {
		t.Errorf("the pool has %d nodes, want 2", nodes)
	}
	w.cancel(id)
	w.released(id)
	w.nothingAsked()
}

// A request that fails is repeated after a back-off, under the next number, as often as the
// configuration says. Then the gang fails with the autoscaler's words.
func TestARequestThatFailsIsRepeatedUpToTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("cpu", 1, "cpu=8", "memory=32Gi")
	w.pool(w.ownClass(), "--fail", "2")
	w.asksForNodes(w.ownClass(), `,"retryStrategy":{"backoffLimitCount":1,"backoffBaseSeconds":1}`)
	seen := w.watchRequests()
	id := w.publish("user-queue", "", []byte(stack.RayCluster("fails", 1, 1)))
	why := w.waits(id, workload.ReasonBackoff)
	hasInOrder(t, why.Message, "nodes are not asked for again before", "-rayjob-gpu-1: Failed: pool .* is set to fail")
	hasInOrder(t, w.reaches(id, workload.Failed).Reason.Message, "the nodes were asked for 2 times", "-rayjob-gpu-2: Failed")
	w.nothingAsked()
	w.nothingOf(id)
	if got := seen(); len(got) != 2 {
		t.Errorf("the requests %v were created, want two", got)
	}
	next := w.publish("user-queue", "", []byte(stack.RayCluster("works", 1, 1)))
	w.reaches(next, workload.Running)
}

// A gang that is cancelled while it waits for nodes leaves no request, and one whose request
// another party deletes asks again.
func TestARequestThatIsCancelledOrDeletedLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("cpu", 1, "cpu=8", "memory=32Gi")
	w.pool(w.ownClass(), "--stock", "0")
	w.asksForNodes(w.ownClass(), `,"retryStrategy":{"backoffBaseSeconds":1}`)
	id := w.publish("user-queue", "", []byte(stack.RayCluster("waits", 1, 1)))
	first := w.asked(1)
	w.refused(first.GetName(), "has room for 0 more nodes")
	w.kubectl("", "delete", "provisioningrequest", first.GetName())
	hasInOrder(t, w.waits(id, workload.ReasonBackoff).Message, "it was deleted, not by Muster")
	w.asked(2)
	w.cancel(id)
	w.reaches(id, workload.Cancelled)
	w.nothingAsked()
}

// Services that are replaced in every step ask neither twice nor for nothing.
func TestARequestOutlivesTheServices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("cpu", 1, "cpu=8", "memory=32Gi")
	w.pool(w.ownClass(), "--stock", "0")
	w.asksForNodes(w.ownClass(), "")
	seen := w.watchRequests()
	restart := func(service string, meanwhile func()) {
		t.Helper()
		if err := w.StopService(service); err != nil {
			t.Fatal(err)
		}
		meanwhile()
		if err := w.StartService(w.ctx, service); err != nil {
			t.Fatal(err)
		}
	}
	var id workload.ID
	restart(stack.Dispatcher, func() { // the command finds no dispatcher
		id = w.publish("user-queue", "", []byte(stack.RayCluster("outlives", 2, 1)))
		w.waits(id, workload.ReasonProvisioning)
	})
	request := w.asked(1)
	w.refused(request.GetName(), "has room for 0 more nodes")
	restart(stack.QueueManager, func() {})
	restart(stack.Dispatcher, func() {
		w.setPool("--stock", "2")
		w.until("it is provisioned", func() bool {
			return strings.Contains(fmt.Sprint(w.requests()[request.GetName()].Object["status"]), "all nodes of the request are there")
		})
		restart(stack.QueueManager, func() {})
	})
	w.reaches(id, workload.Running)
	w.consumes(request.GetName(), w.ownClass(), "ray-worker", 2)
	restart(stack.Dispatcher, func() { // the command to remove finds none
		w.cancel(id)
		await(w, "the workload is being cancelled", func(e *event.WorkloadChanged) bool { return e.ID == id && e.Phase == workload.Cancelling })
	})
	w.released(id)
	w.nothingAsked()
	if got := seen(); len(got) != 1 {
		t.Errorf("the requests %v were created, want one", got)
	}
}
