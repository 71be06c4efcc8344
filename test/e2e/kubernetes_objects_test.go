package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	queuemanager "muster.dev/muster/services/queue-manager/app"
	"muster.dev/muster/test/stack"
)

// The story of the blog on MCAD, with its commands and words: the first cluster runs,
// the second waits without a pod until the first is deleted. The node has two GPUs,
// which the blog's worker asks for; the p3.2xlarge that the blog names has one.
func TestSeedsGlueByKubectl(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("p3", 1, "cpu=8", "memory=61Gi", "nvidia.com/gpu=2")
	hasInOrder(t, w.kubectl(glue("raycluster-glue", "glue-cluster"), "apply", "-f", "-"), "appwrapper.workload.codeflare.dev/raycluster-glue created")
	w.appWrapper("raycluster-glue", inState("Running", "Running"))
	hasInOrder(t, w.kubectl("", "describe", "appwrapper", "raycluster-glue"),
		"Conditions:", "Status: +True", "Type: +Init", "Reason: +AwaitingHeadOfLine", "Type: +Queueing", `Reason: +FrontOfQueue\.`, "Type: +HeadOfLine",
		"Reason: +AppWrapperRunnable", "Type: +Dispatched", "Filterignore: +true", "State: +Running", "Systempriority: +9")
	hasInOrder(t, w.kubectl("", "describe", "node", w.NodeName("p3", 0)), "Allocatable:", "cpu: +8", "Allocated resources:", `cpu +6 \(75%\)`)

	hasInOrder(t, w.kubectl(glue("raycluster-glue-1", "glue-cluster-1"), "apply", "-f", "-"), "raycluster-glue-1 created")
	w.appWrapper("raycluster-glue-1", inState("Pending", "Backoff"))
	hasInOrder(t, w.kubectl("", "get", "appwrappers"), "NAME", "raycluster-glue ", "raycluster-glue-1 ")
	pods := w.kubectl("", "get", "pods")
	hasInOrder(t, pods, "NAME +READY +STATUS +RESTARTS +AGE", `glue-cluster-head-\S+ +1/1 +Running +0`, `glue-cluster-small-group-worker-\S+ +1/1 +Running +0`)
	if strings.Contains(pods, "glue-cluster-1-") {
		t.Errorf("the second has pods:\n%s", pods)
	}
	hasInOrder(t, w.kubectl("", "delete", "appwrapper", "raycluster-glue"), `"raycluster-glue" deleted`)
	w.appWrapper("raycluster-glue-1", inState("Running", "Running"))
	hasInOrder(t, w.kubectl("", "get", "pods"), `glue-cluster-1-head-\S+ +1/1 +Running`)
}

// indented puts a manifest under a key of another one.
func indented(manifest string, by int) string {
	return strings.Repeat(" ", by) + strings.TrimSpace(manifest) // JSON is one line
}

// A v1beta2 AppWrapper whose job fails is tried again as often as its annotation
// says, and has failed then; the cause stays readable.
func TestAnAppWrapperIsTriedAgainAsOftenAsItAsks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("cpu", 1, "cpu=8", "memory=32Gi")
	w.kubectl("apiVersion: workload.codeflare.dev/v1beta2\nkind: AppWrapper\nmetadata:\n  name: fails\n  annotations:\n"+
		"    workload.codeflare.dev.appwrapper/retryLimit: '1'\n    workload.codeflare.dev.appwrapper/retryPausePeriodDuration: 1s\n"+
		"spec:\n  components:\n  - template:\n"+indented(stack.RayJob("fails", 1, 0, "failed", "1s"), 6)+"\n", "create", "-f", "-")
	status := w.appWrapper("fails", func(status map[string]any) bool { return status["phase"] == "Failed" })
	if why := fmt.Sprint(status["why"]); !strings.Contains(why, "failed after 1 requeues") || !strings.Contains(why, "RayJob") {
		t.Errorf("the reason is %q", why)
	}
	if got := fmt.Sprint(status["resettingCount"]); got != "1" {
		t.Errorf("it was reset %s times, want 1", got)
	}
	if pods := w.kubectl("", "get", "pods"); strings.Contains(pods, "Running") {
		t.Errorf("pods are left:\n%s", pods)
	}
}

// passing is an AppWrapper that succeeds after a second and may stay for another.
func passing(name string) string {
	return "apiVersion: workload.codeflare.dev/v1beta2\nkind: AppWrapper\nmetadata:\n  name: " + name + "\n  annotations:\n" +
		"    workload.codeflare.dev.appwrapper/successTTLDuration: 1s\n" +
		"spec:\n  components:\n  - template:\n" + indented(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "`+name+`"}}`, 6) + "\n" +
		"  - template:\n" + indented(stack.RayJob(name, 1, 0, "succeeded", "1s"), 6) + "\n"
}

// An AppWrapper that may not stay after its success is deleted with all that it
// wraps.
func TestAnAppWrapperGoesAfterItsSuccess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("cpu", 1, "cpu=8", "memory=32Gi")
	w.kubectl(passing("passes"), "create", "-f", "-")
	await(w, "its success", func(e *event.WorkloadChanged) bool { return e.Name == "passes" && e.Phase == workload.Succeeded })
	w.until("it is gone", func() bool { return strings.Contains(w.kubectl("", "get", "appwrappers"), "No resources found") })
	w.untilPods("nothing of it is left", func() bool {
		left, err := w.Kube.CoreV1().ConfigMaps(w.Namespace).List(w.ctx, metav1.ListOptions{LabelSelector: kube.WorkloadLabel})
		if err != nil {
			t.Fatal(err)
		}
		return len(left.Items) == 0 && len(w.pods("")) == 0
	})
}

// MCAD's limit of how long a gang may run ends it, in MCAD's words.
func TestAnAppWrapperMayRunAsLongAsItsDispatchDuration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("kind", 1, "cpu=8", "memory=32Gi")
	w.kubectl(rayclusterComplete("limited")+"  schedulingSpec: {dispatchDuration: {limit: 2}}\n", "create", "-f", "-")
	w.appWrapper("limited", inState("Failed", "PreemptCandidate"))
	hasInOrder(t, w.kubectl("", "describe", "appwrapper", "limited"), `Message: +Dispatch deadline exceeded\. allowed to run for 2 seconds`, "Reason: +DispatchDeadlineExceeded", "Type: +PreemptCandidate", "State: +Failed")
	if pods := w.kubectl("", "get", "pods"); strings.Contains(pods, "limited-") {
		t.Errorf("pods are left:\n%s", pods)
	}
}

// A labelled object that is evicted is suspended again, waits without a pod, and runs
// when there is room; its owner has deleted nothing and loses nothing.
func TestALabelledRayClusterThatIsEvictedIsSuspendedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")
	_, err := w.Queries.Configure(w.ctx, "", query.ConfigureRequest{Apply: []json.RawMessage{
		[]byte(`{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"ClusterQueue","metadata":{"name":"default"},"spec":{"preemption":{"withinClusterQueue":"LowerPriority"}}}`),
		[]byte(`{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"WorkloadPriorityClass","metadata":{"name":"high"},"value":100}`),
	}})
	if err != nil {
		t.Fatal(err)
	}
	w.kubectl(labelled(stack.RayCluster("low", 1, 2), "muster.dev/queue-name", "default"), "create", "-f", "-")
	before := w.rayObject("rayclusters", "low", runs)
	high := strings.Replace(labelled(stack.RayCluster("high", 1, 2), "muster.dev/queue-name", "default"), `"labels":{`, `"labels":{"kueue.x-k8s.io/priority-class":"high",`, 1)
	w.kubectl(high, "create", "-f", "-")
	w.rayObject("rayclusters", "high", runs)
	low := w.rayObject("rayclusters", "low", func(u *unstructured.Unstructured) bool {
		suspended, _, _ := unstructured.NestedBool(u.Object, "spec", "suspend")
		return suspended && state(u) == "queued"
	})
	if low.GetUID() != before.GetUID() {
		t.Error("it is another object now")
	}
	if pods := w.kubectl("", "get", "pods"); strings.Contains(pods, "low-") {
		t.Errorf("the evicted one has pods:\n%s", pods)
	}
	hasInOrder(t, w.kubectl("", "describe", "raycluster", "low"), "Events:", "MusterEvicting")
	w.kubectl("", "delete", "raycluster", "high")
	w.rayObject("rayclusters", "low", runs)
}

// Who may submit to a queue is known from the API server, whatever is written on
// the object.
func TestSubmittersByKubectl(t *testing.T) {
	t.Parallel()
	w := startWorld(t, stack.Options{Queues: []queuemanager.Queue{{
		Name: "fenced", Namespaces: []string{"default"}, Submitters: []workload.Submitters{{Who: []string{"kubernetes/*/fenced-alice"}}},
	}}})
	w.nodes("cpu", 1, "cpu=8", "memory=32Gi")
	w.kubectl("apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: fenced-rays, namespace: default}\nrules: [{apiGroups: [ray.io], resources: [rayclusters], verbs: [create]}]\n", "apply", "-n", "default", "-f", "-")
	w.kubectl("apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: fenced-rays, namespace: default}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: fenced-rays}\n"+
		"subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: fenced-alice}, {apiGroup: rbac.authorization.k8s.io, kind: User, name: fenced-bob}]\n", "apply", "-n", "default", "-f", "-")
	create := func(name, user string) {
		manifest := stack.Annotated(labelled(stack.RayCluster(name, 0, 0), "muster.dev/queue-name", "fenced"), "muster.dev/user", "fenced-alice")
		w.kubectl(manifest, "create", "-n", "default", "--as", user, "--validate=false", "-f", "-")
		t.Cleanup(func() { _, _ = w.Kubectl(w.ctx, "", "delete", "raycluster", name, "-n", "default", "--wait=false") })
	}
	valueOf := func(name, field string) string {
		return w.kubectl("", "get", "raycluster", name, "-n", "default", "-o", "jsonpath={.metadata.annotations.muster\\.dev/"+field+"}")
	}
	create("fenced-hers", "fenced-alice")
	w.until("hers is admitted", func() bool { return valueOf("fenced-hers", "state") == "admitted" })
	create("fenced-his", "fenced-bob") // he writes that it is hers
	w.until("his is rejected", func() bool { return valueOf("fenced-his", "state") == "rejected" })
	if why := valueOf("fenced-his", "reason"); !strings.Contains(why, `queue "fenced" does not exist or does not admit this submitter`) {
		t.Errorf("the reason is %q", why)
	}
	hasInOrder(t, w.kubectlFails("", "annotate", "raycluster", "fenced-his", "-n", "default", "--overwrite", "muster.dev/user=fenced-alice"), "cannot be changed")
}
