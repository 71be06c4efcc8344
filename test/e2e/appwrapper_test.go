package e2e

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

// plainObjects are the objects of stack.PlainObjects.
func plainObjects(name string) map[string]schema.GroupVersionResource {
	return map[string]schema.GroupVersionResource{
		name + "-config":  {Version: "v1", Resource: "configmaps"},
		name + "-script":  {Version: "v1", Resource: "configmaps"},
		name + "-service": {Version: "v1", Resource: "services"},
		name + "-web":     {Group: "apps", Version: "v1", Resource: "deployments"},
	}
}

// there returns which of the objects exist in the world's namespace.
func (w *world) there(objects map[string]schema.GroupVersionResource) []string {
	w.t.Helper()
	var found []string
	for name, resource := range objects {
		_, err := w.Dynamic.Resource(resource).Namespace(w.Namespace).Get(w.ctx, name, metav1.GetOptions{})
		if err == nil {
			found = append(found, name)
		} else if !apierrors.IsNotFound(err) {
			w.t.Fatal(err)
		}
	}
	return found
}

// A workload of several objects: nothing of it exists while it waits, all of it
// when it runs, each pod on its place, and nothing when it was cancelled.
func TestAnAppWrapperIsCreatedWholeAndRemovedWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("gpu", 1, "cpu=12", "memory=32Gi", "nvidia.com/gpu=2")
	first := w.submit(stack.RayCluster("first", 1, 2))
	w.reaches(first, workload.Running)

	wrapped := w.submit(stack.AppWrapper(w.Namespace, "wrapper", append(stack.PlainObjects("wrapper"), stack.RayCluster("wrapped", 1, 2))...))
	w.waits(wrapped, workload.ReasonFit)
	w.nothingOf(wrapped)
	if found := w.there(plainObjects("wrapper")); len(found) > 0 {
		t.Errorf("while it waits there are %v", found)
	}

	w.cancel(first)
	w.reaches(wrapped, workload.Running)
	w.asPlanned(wrapped)
	if found := w.there(plainObjects("wrapper")); len(found) != 4 {
		t.Errorf("when it runs there are only %v", found)
	}
	if pods := w.pods(wrapped); len(pods) != 4 {
		t.Errorf("it has %d pods, want head, worker and two of the Deployment", len(pods))
	}

	w.cancel(wrapped)
	w.reaches(wrapped, workload.Cancelled)
	w.nothingOf(wrapped)
	if found := w.there(plainObjects("wrapper")); len(found) > 0 {
		t.Errorf("after it was cancelled there are %v", found)
	}
}

// When Kubernetes refuses one object, those before it are taken back before the
// workload has failed.
func TestAnAppWrapperWithARefusedObjectLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("gpu", 1, "cpu=12", "memory=32Gi", "nvidia.com/gpu=2")
	bad := "apiVersion: v1\nkind: Service\nmetadata: {name: bad}\nspec: {ports: [{port: 99999999}]}\n"
	objects := append([]string{stack.RayCluster("rolled-back", 1, 1)}, append(stack.PlainObjects("rolled-back"), bad)...)
	id := w.submit(stack.AppWrapper(w.Namespace, "rolled-back", objects...))
	reason := w.reaches(id, workload.Failed).Reason
	for _, part := range []string{w.Namespace + "/rolled-back creation failure: Service bad", "99999999"} {
		if !strings.Contains(reason.Message, part) {
			t.Errorf("the reason lacks %q: %s", part, reason.Message)
		}
	}
	w.nothingOf(id)
	if found := w.there(plainObjects("rolled-back")); len(found) > 0 {
		t.Errorf("after the refusal there are %v", found)
	}
	w.released(id)
}

// The objects of an AppWrapper that has ended are kept to be read until another one, of
// whatever name, wraps objects of these names. One that is removed is waited for.
func TestTheNamesInAnEndedAppWrapperAreFree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("gpu", 1, "cpu=12", "memory=32Gi", "nvidia.com/gpu=2")
	wrap := func(name, duration string) string {
		return stack.AppWrapper(w.Namespace, name, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: script}\ndata: {a: b}\n",
			stack.RayJob("again", 1, 1, "succeeded", duration))
	}
	for _, name := range []string{"wrapper", "wrapper", "another"} {
		id := w.submit(wrap(name, "1s"))
		w.reaches(id, workload.Succeeded)
		w.released(id)
		w.rayObject("rayjobs", "again", func(u *unstructured.Unstructured) bool { return u.GetLabels()[kube.WorkloadLabel] == string(id) })
	}
	long := w.submit(wrap("long", "1h"))
	w.reaches(long, workload.Running)
	other := w.submit(wrap("beside", "1s"))
	if reason := w.reaches(other, workload.Failed).Reason; !strings.Contains(reason.Message, "ConfigMap script: already exists and does not belong to this workload") {
		t.Errorf("beside a live one of these names it failed because of %+v", reason)
	}
	w.cancel(long)
	w.reaches(long, workload.Cancelling)
	w.reaches(w.submit(wrap("after", "1s")), workload.Succeeded)
}

// A workload with a kind that no cluster serves reserves nothing: it waits as one that never
// fits, the next one starts, and it starts itself once the kind is installed.
func TestAnAppWrapperOfAKindThatIsNotServedWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("gpu", 1, "cpu=12", "memory=32Gi", "nvidia.com/gpu=1")
	strange := "apiVersion: scheduling.volcano.sh/v9\nkind: PodGroup\nmetadata: {name: strange}\nspec: {}\n"
	objects := append(stack.PlainObjects("unserved"), stack.RayCluster("unserved", 1, 1), strange)
	id := w.submit(stack.AppWrapper(w.Namespace, "unserved", objects...))
	never := w.waits(id, workload.ReasonNeverFits)
	if want := "no cluster serves the kind PodGroup of scheduling.volcano.sh/v9"; !strings.Contains(never.Message, want) {
		t.Errorf("the reason is %q, want %q", never.Message, want)
	}
	next := w.submit(stack.RayCluster("next", 1, 1))
	w.reaches(next, workload.Running)
	if found := w.there(plainObjects("unserved")); len(found) > 0 || !w.one(id).Times.Admitted.IsZero() {
		t.Errorf("of what waits there are %v, and its times are %+v", found, w.one(id).Times)
	}
	w.cancel(next)
	w.released(next)
	w.define("scheduling.volcano.sh", "v9", "podgroups", "PodGroup")
	w.reaches(id, workload.Running)
}

// RayClusters in an AppWrapper change their sizes as those that stand alone: the
// difference is admitted all or none, and its pods wait at their gates until then;
// what is given up is free when its pods are gone. Of several clusters each has its
// own sizes.
func TestWrappedClustersChangeTheirSizes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=3")
	id := w.submit(stack.AppWrapper(w.Namespace, "wrapper", stack.RayCluster("one", 1, 1), stack.RayCluster("two", 1, 1)))
	w.reaches(id, workload.Running)
	sets := map[string]bool{}
	for _, p := range w.one(id).Placements {
		sets[p.PodSet] = true
	}
	const one, two = "0.workers", "1.workers"
	if !sets[one] || !sets[two] {
		t.Fatalf("there are places for %v, want for %s and %s", sets, one, two)
	}

	w.scale("two", 3)
	w.grows(id, `2 more of "`+two+`"`)
	w.untilPods("KubeRay has created the pods", func() bool { return len(w.pods(id)) == 6 })
	if started := w.started(id); started != 4 {
		t.Errorf("%d pods have started, want 4", started)
	}
	w.nodes("more", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=1")
	w.sizedSet(id, two, 3)
	w.sizedSet(id, one, 1)
	w.asPlanned(id)

	next := w.submit(stack.RayCluster("next", 2, 1))
	w.waits(next, workload.ReasonFit)
	w.scale("two", 1)
	w.sizedSet(id, two, 1)
	w.reaches(next, workload.Running)
	w.asPlanned(next)
	if record := w.one(id); record.Phase != workload.Running || record.Attempt != 1 {
		t.Errorf("it is %s, attempt %d", record.Phase, record.Attempt)
	}
}

// The cluster of a RayJob in an AppWrapper is the one that KubeRay made for it.
func TestAWrappedJobsClusterGrows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")
	id := w.submit(stack.AppWrapper(w.Namespace, "wrapper", stack.RayJob("job", 1, 1, "succeeded", "1h")))
	w.reaches(id, workload.Running)
	clusters, err := w.rayClusters().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(clusters.Items) != 1 {
		t.Fatalf("there are %d RayClusters, %v", len(clusters.Items), err)
	}
	w.scale(clusters.Items[0].GetName(), 3)
	w.grows(id, `2 more of "workers"`)
	w.nodes("more", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=1")
	w.sized(id, 3)
	w.asPlanned(id)
}

// A wrapped Deployment that a user makes larger does not outgrow its places: its
// new pods wait at their gates although there is room, and the reason says so.
func TestAWrappedDeploymentDoesNotOutgrowItsPlaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("gpu", 1, "cpu=16", "memory=32Gi", "nvidia.com/gpu=2")
	id := w.submit(stack.AppWrapper(w.Namespace, "wrapper", append(stack.PlainObjects("wrapper"), stack.RayCluster("wrapped", 1, 1))...))
	w.reaches(id, workload.Running)
	places := len(w.one(id).Placements)
	scale := func(replicas string) {
		t.Helper()
		_, err := w.Dynamic.Resource(plainObjects("wrapper")["wrapper-web"]).Namespace(w.Namespace).Patch(t.Context(), "wrapper-web",
			types.MergePatchType, []byte(`{"spec":{"replicas":`+replicas+`}}`), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	scale("3")
	w.grows(id, "1 more of ")
	if started := w.started(id); started != 4 {
		t.Errorf("%d pods have started, want 4", started)
	}
	if record := w.one(id); len(record.Placements) != places {
		t.Errorf("it has places %v", record.Placements)
	}
	scale("2")
	w.until("the reason is gone", func() bool { return w.one(id).Reason == nil })
	w.asPlanned(id)
}
