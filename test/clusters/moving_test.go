package clusters

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	queuemanager "muster.dev/muster/services/queue-manager/app"
	"muster.dev/muster/test/stack"
	"muster.dev/muster/test/stack/stacktest"
)

// objects are the Ray objects of a kind in a namespace of a cluster.
type objects struct {
	*world
	api       dynamic.ResourceInterface
	namespace string
	client    dynamic.Interface
}

// newMovingWorld has a queue whose objects move, with a namespace of its own in both clusters.
func newMovingWorld(t *testing.T, namespace string, queue queuemanager.Queue) *world {
	t.Helper()
	queue.Name, queue.Namespaces, queue.HomeObjects = stacktest.MovingQueue, []string{namespace}, workload.MoveFromHome
	return newWorld(t, stack.Options{Queues: []queuemanager.Queue{queue}}, queue.Name)
}

func (w *world) objects(client dynamic.Interface, resource, namespace string) objects {
	kind := schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: resource}
	return objects{w, client.Resource(kind).Namespace(namespace), namespace, client}
}

// create makes an object in the queue, as kubectl would, and returns its workload.
func (o objects) create(manifest string) workload.Record {
	o.t.Helper()
	var object unstructured.Unstructured
	if err := json.Unmarshal([]byte(stack.Labelled(manifest, kube.QueueNameLabel, stacktest.MovingQueue)), &object.Object); err != nil {
		o.t.Fatal(err)
	}
	if _, err := o.api.Create(o.t.Context(), &object, metav1.CreateOptions{}); err != nil {
		o.t.Fatal(err)
	}
	var found []workload.Record
	o.until(object.GetName()+" is a workload", func() bool {
		answer, err := o.Queries.Workloads(o.t.Context(), query.WorkloadsRequest{Name: object.GetName(), Namespace: o.namespace})
		if err != nil {
			o.t.Fatal(err)
		}
		found = answer.Workloads
		return len(found) > 0
	})
	return found[len(found)-1]
}

// get returns an object; nil when there is none.
func (o objects) get(name string) *unstructured.Unstructured {
	o.t.Helper()
	found, err := o.api.Get(context.WithoutCancel(o.t.Context()), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		o.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return found
}

// awaitStatus waits until the status of an object has these values, and returns the object.
func (o objects) awaitStatus(name string, want map[string]string) (found *unstructured.Unstructured) {
	o.t.Helper()
	o.until(fmt.Sprintf("%s has the status %v", name, want), func() bool {
		if found = o.get(name); found == nil {
			return false
		}
		for field, value := range want {
			if has, _, _ := unstructured.NestedString(found.Object, "status", field); has != value { // absent reads as empty
				return false
			}
		}
		return true
	})
	return found
}

// stays checks that an object is still suspended, and out of KubeRay's hands.
func stays(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	suspended, _, _ := unstructured.NestedBool(object.Object, "spec", "suspend") // absent reads as false
	manager, _, _ := unstructured.NestedString(object.Object, "spec", "managedBy")
	if !suspended || manager != "kueue.x-k8s.io/multikueue" {
		t.Errorf("%s is suspended: %t, and managed by %q", object.GetName(), suspended, manager)
	}
}

// eventsOf are the reasons of the events of an object.
func eventsOf(t *testing.T, client kubernetes.Interface, object *unstructured.Unstructured) string {
	t.Helper()
	list, err := client.CoreV1().Events(object.GetNamespace()).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(object.GetUID())})
	if err != nil {
		t.Fatal(err)
	}
	var reasons []string
	for _, e := range list.Items {
		reasons = append(reasons, e.Reason)
	}
	return strings.Join(reasons, " ")
}

// A RayJob that is made in the first cluster, which has no room, runs in the second one. Its status
// and its events are seen in the first one, to its end; nothing else of it is there, and nothing is
// left in the second one.
func TestARayJobMovesToTheOtherCluster(t *testing.T) {
	t.Parallel()
	const namespace = "moving-job"
	w := newMovingWorld(t, namespace, queuemanager.Queue{})
	w.nodes(0, 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")
	home, there := w.objects(w.Dynamic, "rayjobs", namespace), w.objects(w.second.Dynamic, "rayjobs", namespace)
	record := home.create(stack.RayJob("train", 1, 2, "succeeded", "20s"))
	running := home.awaitStatus("train", map[string]string{"jobDeploymentStatus": "Running", "jobStatus": "RUNNING"})
	stays(t, running)
	w.runsIn(record.ID, 1, w.second.Name)
	if record = w.one(record.ID); record.MadeIn() != w.Pool || record.Home() != "" {
		t.Errorf("the workload was made in %q and has the home %q", record.MadeIn(), record.Home())
	}
	name := record.ObjectName()
	if place := running.GetAnnotations()[kube.PlaceKey]; place != w.second.Name+"/"+name {
		t.Errorf("the object names the place %q, want %s/%s", place, w.second.Name, name)
	}
	copied := there.get(name)
	if copied == nil || copied.GetAnnotations()[kube.HomeKey] != w.Pool+"/train" {
		t.Fatalf("in the second cluster %s is %+v", name, copied)
	}
	done := home.awaitStatus("train", map[string]string{"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"})
	if id, _, _ := unstructured.NestedString(done.Object, "status", "jobId"); id == "" {
		t.Errorf("the status of the finished job is not KubeRay's: %v", done.Object["status"])
	}
	w.until("the home shows the end", func() bool { return stateIs(string(workload.Succeeded))(home.get("train")) })
	if events := eventsOf(t, w.Kube, done); !strings.Contains(events, "MusterAdmitted") {
		t.Errorf("the events of the object are %q", events)
	}
	w.until("nothing is left in the second cluster", func() bool { return there.get(name) == nil })
	if own := home.get(name); own != nil {
		t.Errorf("the first cluster has %s, too", name)
	}
}

// An object that is made in the second cluster runs there while it has room, else in the first
// one. Its deletion ends what runs in its place, and it is there until that has ended.
func TestARayClusterMovesAndItsDeletionEndsIt(t *testing.T) {
	t.Parallel()
	const namespace = "moving-cluster"
	w := newMovingWorld(t, namespace, queuemanager.Queue{})
	w.nodes(1, 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")
	home, there := w.objects(w.second.Dynamic, "rayclusters", namespace), w.objects(w.Dynamic, "rayclusters", namespace)
	near := home.create(stack.RayCluster("near", 1, 2))
	w.runsIn(near.ID, 1, w.second.Name)
	stays(t, home.awaitStatus("near", map[string]string{"state": "ready"}))
	far := home.create(stack.RayCluster("far", 1, 2))
	w.runsIn(far.ID, 1, w.Pool)
	stays(t, home.awaitStatus("far", map[string]string{"state": "ready"}))
	waits := home.create(stack.RayCluster("waits", 1, 2))
	w.waits(waits.ID)
	home.awaitStatus("waits", map[string]string{"state": "suspended"})

	record := w.one(far.ID)
	if err := home.api.Delete(t.Context(), "far", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.until("the deleted object is gone", func() bool { return home.get("far") == nil })
	if left := there.get(record.ObjectName()); left != nil {
		t.Errorf("the object is gone, but %s is still in the first cluster", left.GetName())
	}
	if record = w.one(far.ID); record.Phase != workload.Cancelled || record.Holding {
		t.Errorf("the workload of the deleted object is %s, holding %t", record.Phase, record.Holding)
	}
	w.runsIn(waits.ID, 1, w.Pool)
	stays(t, home.awaitStatus("waits", map[string]string{"state": "ready"}))
}

// Each part that has to do with an object that moves is stopped in between. What was done goes on,
// nothing is done twice, and a deletion that no part saw has its effect.
func TestAnObjectMovesWhilePartsAreAway(t *testing.T) {
	t.Parallel()
	const namespace = "moving-away"
	w := newMovingWorld(t, namespace, queuemanager.Queue{})
	w.nodes(1, 0, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")
	home, there := w.objects(w.second.Dynamic, "rayclusters", namespace), w.objects(w.Dynamic, "rayclusters", namespace)
	stop := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	stop(w.StopService(stack.Dispatcher))
	record := home.create(stack.RayCluster("far", 1, 2))
	w.await(record.ID, "is admitted", func(e *event.WorkloadChanged) bool { return e.Phase == workload.Admitted })
	stop(w.second.StopService(stack.Intake))
	stop(w.StopService(stack.QueueManager))
	stop(w.StartService(t.Context(), stack.Dispatcher))
	stop(w.StartService(t.Context(), stack.QueueManager))
	w.runsIn(record.ID, 1, w.Pool)
	if state, _, _ := unstructured.NestedString(home.get("far").Object, "status", "state"); state == "ready" { // absent reads as empty
		t.Error("the status is mirrored without an intake")
	}
	stop(w.second.StartService(t.Context(), stack.Intake))
	stays(t, home.awaitStatus("far", map[string]string{"state": "ready"}))
	name := w.one(record.ID).ObjectName()
	first := there.get(name).GetUID()

	stop(w.second.StopService(stack.Intake))
	if err := home.api.Delete(t.Context(), "far", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if object := there.get(name); object == nil || object.GetUID() != first || object.GetDeletionTimestamp() != nil {
		t.Errorf("while the home cannot tell of the deletion, what runs in the place is %v", object)
	}
	stop(w.second.StartService(t.Context(), stack.Intake))
	w.until("the deleted object is gone", func() bool { return home.get("far") == nil })
	if left := there.get(name); left != nil {
		t.Errorf("%s is left", name)
	}
}

// While the home is cut off its gang runs on. A deletion at home has its effect when it is back.
func TestAGangRunsOnWhileItsHomeIsCutOff(t *testing.T) {
	t.Parallel()
	const namespace = "moving-cut"
	w := newMovingWorld(t, namespace, queuemanager.Queue{})
	w.nodes(1, 0, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")
	home, there := w.objects(w.second.Dynamic, "rayclusters", namespace), w.objects(w.Dynamic, "rayclusters", namespace)
	record := home.create(stack.RayCluster("far", 1, 2))
	w.runsIn(record.ID, 1, w.Pool)
	home.awaitStatus("far", map[string]string{"state": "ready"})
	w.second.Cut()
	w.until("the status is known to be old", func() bool { return home.get("far").GetAnnotations()[kube.StaleKey] != "" })
	if err := home.api.Delete(t.Context(), "far", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if record = w.one(record.ID); record.Phase != workload.Running || there.get(record.ObjectName()) == nil {
		t.Errorf("while its home is cut off the gang is %s", record.Phase)
	}
	w.second.Mend()
	w.until("the deleted object is gone", func() bool { return home.get("far") == nil })
	if left := there.get(record.ObjectName()); left != nil {
		t.Errorf("%s is left", left.GetName())
	}
}

// A cluster that is drained gives the gang up, and its next attempt runs elsewhere: here at home,
// beside the object that stays suspended.
func TestAGangComesHomeFromADrainedCluster(t *testing.T) {
	t.Parallel()
	const namespace = "moving-drain"
	w := newMovingWorld(t, namespace, queuemanager.Queue{})
	w.nodes(1, 0, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")
	home := w.objects(w.second.Dynamic, "rayclusters", namespace)
	record := home.create(stack.RayCluster("far", 1, 2))
	w.runsIn(record.ID, 1, w.Pool)
	w.nodes(0, 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")
	w.order(query.HoldRequest{Cluster: w.Pool, Drain: true, Why: "it goes back"})
	w.runsIn(record.ID, 2, w.second.Name)
	stays(t, home.awaitStatus("far", map[string]string{"state": "ready"}))
	place := w.second.Name + "/" + record.ObjectName()
	w.until("the object names its new place", func() bool { return home.get("far").GetAnnotations()[kube.PlaceKey] == place })
}
