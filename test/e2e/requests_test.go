package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

var requests = schema.GroupVersionResource{Group: "autoscaling.x-k8s.io", Version: "v1", Resource: "provisioningrequests"}

// seedClass is the provisioningClassName of the Kueue guide. Tests with pools of other
// classes may run at the same time.
const seedClass = "queued-provisioning.gke.io"

// asksForNodes applies the queue of the Kueue guide to the stack: "user-queue", whose gangs
// ask for nodes of the class when they do not fit.
func (w *world) asksForNodes(class, retry string) {
	w.t.Helper()
	w.configures(class, `"maxRunDurationSeconds":"3600"`, retry)
}

// showsGangs is asksForNodes with gangs that show themselves as pods, for that many seconds.
func (w *world) showsGangs(deadline int, retry string) {
	w.t.Helper()
	w.configures(workload.PlaceholderClass, fmt.Sprintf(`"deadlineSeconds":"%d"`, deadline), retry)
}

func (w *world) configures(class, parameters, retry string) {
	w.t.Helper()
	apply := []json.RawMessage{}
	for _, object := range []string{
		`{"kind":"ResourceFlavor","metadata":{"name":"default-flavor"}}`,
		`{"kind":"AdmissionCheck","metadata":{"name":"rayjob-gpu"},"spec":{"controllerName":"kueue.x-k8s.io/provisioning-request",
			"parameters":{"apiGroup":"kueue.x-k8s.io","kind":"ProvisioningRequestConfig","name":"rayjob-gpu-config"}}}`,
		`{"kind":"ProvisioningRequestConfig","metadata":{"name":"rayjob-gpu-config"},"spec":{"provisioningClassName":"` + class + `",
			"managedResources":["nvidia.com/gpu"],"parameters":{` + parameters + `}` + retry + `}}`,
		`{"kind":"ClusterQueue","metadata":{"name":"cluster-queue"},"spec":{"namespaceSelector":{},"admissionChecks":["rayjob-gpu"],
			"resourceGroups":[{"coveredResources":["cpu","memory","nvidia.com/gpu"],"flavors":[{"name":"default-flavor","resources":[
				{"name":"cpu","nominalQuota":10000},{"name":"memory","nominalQuota":"10000Gi"},{"name":"nvidia.com/gpu","nominalQuota":10000}]}]}]}}`,
		`{"kind":"LocalQueue","metadata":{"namespace":"` + w.Namespace + `","name":"user-queue"},"spec":{"clusterQueue":"cluster-queue"}}`,
	} {
		apply = append(apply, json.RawMessage(`{"apiVersion":"kueue.x-k8s.io/v1beta1",`+object[1:]))
	}
	if _, err := w.Queries.Configure(w.ctx, "", query.ConfigureRequest{Apply: apply}); err != nil {
		w.t.Fatal(err)
	}
}

// pool adds a pool of no nodes, with one GPU on each that comes.
func (w *world) pool(class string, flags ...string) {
	w.t.Helper()
	all := append([]string{"--class", class, "--max", "9", "--resource", "cpu=8", "--resource", "memory=32Gi", "--resource", "nvidia.com/gpu=1"}, flags...)
	if err := w.NodePool(w.ctx, "add", "l4", all...); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := w.NodePool(w.ctx, "remove", "l4"); err != nil {
			w.t.Error(err)
		}
	})
}

func (w *world) setPool(flags ...string) {
	w.t.Helper()
	if err := w.NodePool(w.ctx, "set", "l4", flags...); err != nil {
		w.t.Fatal(err)
	}
}

// ownClass is a class that no pool of another test answers.
func (w *world) ownClass() string { return w.Pool + ".example.com" }

// requests lists the ProvisioningRequests of the stack, uncached, by name.
func (w *world) requests() map[string]*unstructured.Unstructured {
	w.t.Helper()
	list, err := w.Dynamic.Resource(requests).Namespace(w.Namespace).List(w.ctx, metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	found := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		found[list.Items[i].GetName()] = &list.Items[i]
	}
	return found
}

// asked waits until there is exactly one request, with the number, and returns it.
func (w *world) asked(number int) *unstructured.Unstructured {
	w.t.Helper()
	var found *unstructured.Unstructured
	w.until(fmt.Sprintf("request %d is there", number), func() bool {
		all := w.requests()
		names := slices.Collect(maps.Keys(all))
		if len(names) != 1 || !strings.HasSuffix(names[0], fmt.Sprintf("-rayjob-gpu-%d", number)) {
			return false
		}
		found = all[names[0]]
		return true
	})
	return found
}

// nothingAsked waits until neither a request nor a PodTemplate is left.
func (w *world) nothingAsked() {
	w.t.Helper()
	w.until("no request and no PodTemplate is left", func() bool {
		templates, err := w.Kube.CoreV1().PodTemplates(w.Namespace).List(w.ctx, metav1.ListOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		return len(w.requests()) == 0 && len(templates.Items) == 0
	})
}

// wantAsked checks what a request asks for: pods by the container that they have.
func (w *world) wantAsked(request *unstructured.Unstructured, class string, want map[string]int64) {
	w.t.Helper()
	spec := request.Object["spec"].(map[string]any)
	if spec["provisioningClassName"] != class || fmt.Sprint(spec["parameters"]) != "map[maxRunDurationSeconds:3600]" {
		w.t.Errorf("the request has class %v and parameters %v", spec["provisioningClassName"], spec["parameters"])
	}
	got := map[string]int64{}
	for _, set := range spec["podSets"].([]any) {
		name, _, _ := unstructured.NestedString(set.(map[string]any), "podTemplateRef", "name")
		template, err := w.Kube.CoreV1().PodTemplates(w.Namespace).Get(w.ctx, name, metav1.GetOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		pod := template.Template.Spec
		if len(pod.SchedulingGates) > 0 {
			w.t.Errorf("PodTemplate %s has the gates %v: an autoscaler would not place it", name, pod.SchedulingGates)
		}
		got[pod.Containers[0].Name] += set.(map[string]any)["count"].(int64)
	}
	if !maps.Equal(got, want) {
		w.t.Errorf("the request asks for %v, want %v", got, want)
	}
}

// poolNodes counts the nodes that came for requests.
func (w *world) poolNodes() int {
	w.t.Helper()
	list, err := w.Kube.CoreV1().Nodes().List(w.ctx, metav1.ListOptions{LabelSelector: "devcluster.muster.dev/pool=" + w.Pool + "-l4"})
	if err != nil {
		w.t.Fatal(err)
	}
	return len(list.Items)
}

// knowsPoolNodes counts the nodes of the pool that queue-manager knows as ready.
func (w *world) knowsPoolNodes() (count int) {
	w.t.Helper()
	for _, n := range w.knownNodes() {
		if n.Ready && n.Labels["devcluster.muster.dev/pool"] == w.Pool+"-l4" {
			count++
		}
	}
	return count
}

// refused waits until the autoscaler has looked at the request and reports why it has no nodes.
func (w *world) refused(name, why string) {
	w.t.Helper()
	w.until("the autoscaler has looked at the request", func() bool {
		request := w.requests()[name]
		return request != nil && strings.Contains(fmt.Sprint(request.Object["status"]), why)
	})
}

// consumes checks that as many pods with the container say which request they come with, and
// are on nodes of the pool, and that others do not say it.
func (w *world) consumes(request, class, container string, want int) {
	w.t.Helper()
	list, err := w.Kube.CoreV1().Pods(w.Namespace).List(w.ctx, metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	got := 0
	for _, pod := range list.Items {
		consumed, of := pod.Annotations["autoscaling.x-k8s.io/consume-provisioning-request"], pod.Annotations["autoscaling.x-k8s.io/provisioning-class-name"]
		switch {
		case pod.Spec.Containers[0].Name != container:
			if consumed != "" {
				w.t.Errorf("pod %s consumes request %q, and was not asked for", pod.Name, consumed)
			}
		case consumed != request || of != class || !onNewNode(w, pod):
			w.t.Errorf("pod %s on %s consumes %q of class %q, want %q of %q on a node of the pool", pod.Name, pod.Spec.NodeName, consumed, of, request, class)
		default:
			got++
		}
	}
	if got != want {
		w.t.Errorf("%d pods consume the request, want %d", got, want)
	}
}

func onNewNode(w *world, pod corev1.Pod) bool {
	return strings.HasPrefix(pod.Spec.NodeName, w.Pool+"-l4-")
}

// watchRequests watches the requests of the stack from now on; what it returns ends the
// watch and lists those that were created.
func (w *world) watchRequests() func() []string {
	w.t.Helper()
	list, err := w.Dynamic.Resource(requests).Namespace(w.Namespace).List(w.ctx, metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	watcher, err := w.Dynamic.Resource(requests).Namespace(w.Namespace).Watch(w.ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		w.t.Fatal(err)
	}
	var created []string
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for e := range watcher.ResultChan() {
			if u, is := e.Object.(*unstructured.Unstructured); is && e.Type == watch.Added {
				created = append(created, u.GetName())
			}
		}
	}()
	return func() []string {
		watcher.Stop()
		<-ended
		return created
	}
}

// shown counts the placeholder pods by workload, of which none may be bound, and gives their
// UIDs in order.
func (w *world) shown() (pods map[workload.ID]int, uids []string) {
	w.t.Helper()
	list, err := w.Kube.CoreV1().Pods(w.Namespace).List(w.ctx, metav1.ListOptions{LabelSelector: kube.PlaceholderLabel})
	if err != nil {
		w.t.Fatal(err)
	}
	pods = map[workload.ID]int{}
	for _, pod := range list.Items {
		if pod.Spec.NodeName != "" || pod.Status.Phase != corev1.PodPending {
			w.t.Errorf("placeholder pod %s is %s on node %q", pod.Name, pod.Status.Phase, pod.Spec.NodeName)
		}
		if len(pod.Status.Conditions) == 1 && pod.Status.Conditions[0].Reason == corev1.PodReasonUnschedulable {
			pods[workload.ID(pod.Labels[kube.PlaceholderLabel])]++
		}
		uids = append(uids, string(pod.UID))
	}
	slices.Sort(uids)
	return pods, uids
}

// showsAlone waits until a gang shows itself as that many pods, and checks that no other does.
func (w *world) showsAlone(id workload.ID, want int) {
	w.t.Helper()
	w.until(fmt.Sprintf("%s shows %d pods", id, want), func() bool {
		pods, _ := w.shown()
		if len(pods) > 1 {
			w.t.Errorf("two gangs show themselves: %v", pods)
		}
		return pods[id] == want
	})
}

// nothingShown waits until no placeholder pod is left.
func (w *world) nothingShown() {
	w.t.Helper()
	w.until("no placeholder pod is left", func() bool {
		_, uids := w.shown()
		return len(uids) == 0
	})
}

// walkShown has a gang show itself to an autoscaler that sees pods only.
func walkShown(w *world) {
	w.showsGangs(600, "")
	w.setPool("--pending", "--max", "12") // the nodes of the gang before are still there
	id := w.publish("user-queue", "shown", w.ownNodes(stack.RayCluster("shown", 18, 1)))
	w.reaches(id, workload.Running)
	w.cancel(id)
	w.reaches(id, workload.Cancelled)
	w.nothingShown()
}

// walkProvisioned has a gang ask for nodes, at first under a name that is taken.
func walkProvisioned(w *world) {
	w.pool(w.ownClass())
	w.asksForNodes(w.ownClass(), `,"retryStrategy":{"backoffBaseSeconds":1}`)
	id := event.WorkloadID(w.Pool, "provisioned")
	hash := sha256.Sum256([]byte(id))
	foreign := fmt.Sprintf("ppt-raycluster-provisioned-%s-rayjob-gpu-1-workers", hex.EncodeToString(hash[:])[:5])
	w.kubectl("apiVersion: v1\nkind: PodTemplate\nmetadata: {name: "+foreign+"}\ntemplate: {spec: {containers: [{name: c, image: i}]}}\n", "create", "-f", "-")
	w.publish("user-queue", "provisioned", []byte(stack.RayCluster("provisioned", 17, 1)))
	hasInOrder(w.t, w.waits(id, workload.ReasonBackoff).Message, "PodTemplate .*"+foreign)
	w.reaches(id, workload.Running)
	w.cancel(id)
	w.reaches(id, workload.Cancelled)
	w.until("its request is gone", func() bool { return len(w.requests()) == 0 })
	w.kubectl("", "get", "podtemplate", foreign) // it is not Muster's
}
