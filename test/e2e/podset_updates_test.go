package e2e

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/checker"
	"muster.dev/muster/test/stack"
)

// resizeLabel is the label of GKE's nodes with the resize request by which they came.
const resizeLabel = "autoscaling.gke.io/provisioning-request"

// added is what the checker of these tests adds to the workers: places on rented nodes.
var added = checker.Update{
	PodSet: "workers", Labels: map[string]string{"cost-centre": "4711"}, Annotations: map[string]string{"example.com/invoice": "17, of May"},
	NodeSelector: map[string]string{"example.com/kind": "rented"}, Tolerations: []checker.Toleration{{Key: "example.com/rented", Operator: "Equal", Value: "yes", Effect: "NoSchedule"}},
}

var rented = corev1.Taint{Key: "example.com/rented", Value: "yes", Effect: corev1.TaintEffectNoSchedule}

// adds starts a checker that adds podSetUpdates to each gang.
func (w *world) adds(check string) {
	w.t.Helper()
	ended := make(chan error, 1)
	go func() {
		ended <- checker.Run(w.ctx, w.Bus.Conn(), check, func(checker.Wanted) checker.Answer {
			return checker.Answer{Status: "Ready", PodSetUpdates: []checker.Update{added}}
		})
	}()
	w.t.Cleanup(func() {
		select {
		case err := <-ended:
			if err != nil {
				w.t.Errorf("the checker ended: %v", err)
			}
		default:
		}
	})
}

// hasAdded checks what the metadata and the specification of pods of the workers have of the
// podSetUpdates of the checker.
func (w *world) hasAdded(what string, meta metav1.ObjectMeta, spec corev1.PodSpec) {
	w.t.Helper()
	selects := maps.Clone(spec.NodeSelector)
	maps.DeleteFunc(selects, func(key, _ string) bool { _, is := added.NodeSelector[key]; return !is })
	if meta.Labels["cost-centre"] != "4711" || meta.Annotations["example.com/invoice"] != "17, of May" || !maps.Equal(selects, added.NodeSelector) || !tolerates(spec, rented) {
		w.t.Errorf("%s has labels %v, annotations %v, node selector %v and tolerations %v: want those of the check", what, meta.Labels, meta.Annotations, spec.NodeSelector, spec.Tolerations)
	}
}

func tolerates(spec corev1.PodSpec, taint corev1.Taint) bool {
	return slices.ContainsFunc(spec.Tolerations, func(t corev1.Toleration) bool {
		return t.Key == taint.Key && t.Value == taint.Value && t.Effect == taint.Effect && t.Operator == corev1.TolerationOpEqual
	})
}

// wantWorkersAdded checks the pods of a gang: its workers have the podSetUpdates and are on nodes
// of this group, and its head has none of it.
func (w *world) wantWorkersAdded(id workload.ID, onNode func(corev1.Pod) bool, want int) {
	w.t.Helper()
	workers := 0
	for _, pod := range w.pods(id) {
		if pod.Labels[kube.PodSetLabel] != "workers" {
			if pod.Labels["cost-centre"] != "" || pod.Annotations["example.com/invoice"] != "" || pod.Spec.NodeSelector["example.com/kind"] != "" || tolerates(pod.Spec, rented) {
				w.t.Errorf("pod %s has podSetUpdates of the workers: %v", pod.Name, pod)
			}
			continue
		}
		workers++
		w.hasAdded("pod "+pod.Name, pod.ObjectMeta, pod.Spec)
		if !onNode(pod) {
			w.t.Errorf("worker %s is on node %s", pod.Name, pod.Spec.NodeName)
		}
	}
	if workers != want {
		w.t.Errorf("there are %d workers, want %d", workers, want)
	}
}

// What a check by message adds reaches the pods: labels, annotations, a node selector, and a
// toleration. They have places there, and not where they would fit without. What the gang asks for
// once more, after an eviction, is added once more.
func TestPodSetUpdatesOfACheckReachThePods(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("own", 1, "cpu=32", "memory=64Gi", "nvidia.com/gpu=8")
	w.nodes("rented", 2, "cpu=8", "memory=32Gi", "nvidia.com/gpu=1")
	for i := range 2 {
		patch := `{"metadata": {"labels": {"example.com/kind": "rented"}}}`
		if _, err := w.Kube.CoreV1().Nodes().Patch(w.ctx, w.NodeName("rented", i), types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		w.taint(w.NodeName("rented", i), rented)
	}
	w.until("the nodes are known as rented", func() bool {
		known := 0
		for _, n := range w.knownNodes() {
			if n.Labels["example.com/kind"] == "rented" && len(n.Taints) > 0 {
				known++
			}
		}
		return known == 2
	})
	w.checked("", "booked")
	w.adds("booked")
	onRented := func(pod corev1.Pod) bool {
		return pod.Spec.NodeName == w.NodeName("rented", 0) || pod.Spec.NodeName == w.NodeName("rented", 1)
	}
	id := w.publish("user-queue", "", []byte(stack.RayCluster("added", 2, 1)))
	w.reaches(id, workload.Running)
	w.asPlanned(id)
	w.wantWorkersAdded(id, onRented, 2)
	envelope, err := event.New(event.NewID(), "test", time.Now(), &event.WorkloadRequeue{Workload: id, By: "test"})
	if err == nil {
		err = w.Bus.Publish(w.ctx, event.WorkloadSubject("default"), envelope)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.until("it runs again", func() bool {
		record := w.one(id)
		return record.Phase == workload.Running && record.Attempt == 2
	})
	w.asPlanned(id)
	w.wantWorkersAdded(id, onRented, 2)
}

// With a check by message and one that asks for nodes, the PodTemplate of the request has what the
// first check adds, so that an autoscaler brings nodes on which such pods go. The pods have that,
// and the node selector of the ProvisioningRequestConfig.
func TestPodSetUpdatesOfBothKindsOfChecksReachThePods(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("cpu", 1, "cpu=8", "memory=32Gi")
	w.nodes("own", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=8")
	w.pool(w.ownClass(), "--label", "example.com/kind=rented", "--taint", "example.com/rented=yes:NoSchedule")
	w.checked(`{"provisioningClassName":"`+w.ownClass()+`","managedResources":["nvidia.com/gpu"],
		"podSetUpdates":{"nodeSelector":[{"key":"`+resizeLabel+`","valueFromProvisioningClassDetail":"ResizeRequestName"}]}}`, "booked")
	w.adds("booked")
	id := w.publish("user-queue", "", []byte(stack.RayCluster("both", 2, 1)))
	request := w.asked(1)
	for _, set := range request.Object["spec"].(map[string]any)["podSets"].([]any) {
		name, _, _ := unstructured.NestedString(set.(map[string]any), "podTemplateRef", "name")
		template, err := w.Kube.CoreV1().PodTemplates(w.Namespace).Get(w.ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		w.hasAdded("PodTemplate "+name, template.Template.ObjectMeta, template.Template.Spec)
		if template.Template.Spec.NodeSelector[resizeLabel] != "" {
			t.Errorf("PodTemplate %s selects nodes of a resize request, which there is none of yet", name)
		}
	}
	w.reaches(id, workload.Running)
	w.asPlanned(id)
	w.consumes(request.GetName(), w.ownClass(), "ray-worker", 2)
	resize, _, _ := unstructured.NestedString(w.requests()[request.GetName()].Object, "status", "provisioningClassDetails", "ResizeRequestName")
	if resize == "" {
		t.Fatal("the request has no ResizeRequestName")
	}
	w.wantWorkersAdded(id, func(pod corev1.Pod) bool {
		return onNewNode(w, pod) && pod.Spec.NodeSelector[resizeLabel] == resize
	}, 2)
	w.cancel(id)
	w.released(id)
	w.nothingAsked()
}

// checked applies the queue "user-queue" with a check by message and, where there is a
// configuration of requests, one that asks for nodes.
func (w *world) checked(config, check string) {
	w.t.Helper()
	checks, objects := `"`+check+`"`, []string{}
	if config != "" {
		checks += `,"rayjob-gpu"`
		objects = append(objects, `{"kind":"ProvisioningRequestConfig","metadata":{"name":"rayjob-gpu-config"},"spec":`+config+`}`,
			`{"kind":"AdmissionCheck","metadata":{"name":"rayjob-gpu"},"spec":{"controllerName":"kueue.x-k8s.io/provisioning-request",
				"parameters":{"apiGroup":"kueue.x-k8s.io","kind":"ProvisioningRequestConfig","name":"rayjob-gpu-config"}}}`)
	}
	objects = append(objects,
		`{"kind":"AdmissionCheck","metadata":{"name":"`+check+`"},"spec":{"controllerName":"example.com/`+check+`"}}`,
		`{"kind":"ResourceFlavor","metadata":{"name":"default-flavor"}}`,
		`{"kind":"ClusterQueue","metadata":{"name":"cluster-queue"},"spec":{"namespaceSelector":{},"admissionChecks":[`+checks+`],
			"resourceGroups":[{"coveredResources":["cpu","memory","nvidia.com/gpu"],"flavors":[{"name":"default-flavor","resources":[
				{"name":"cpu","nominalQuota":100},{"name":"memory","nominalQuota":"100Gi"},{"name":"nvidia.com/gpu","nominalQuota":100}]}]}]}}`,
		`{"kind":"LocalQueue","metadata":{"namespace":"`+w.Namespace+`","name":"user-queue"},"spec":{"clusterQueue":"cluster-queue"}}`)
	apply := []json.RawMessage{}
	for _, object := range objects {
		apply = append(apply, json.RawMessage(`{"apiVersion":"kueue.x-k8s.io/v1beta1",`+object[1:]))
	}
	if _, err := w.Queries.Configure(w.ctx, "", query.ConfigureRequest{Apply: apply}); err != nil {
		w.t.Fatal(err)
	}
}
