package e2e

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

// bareJob is a job whose head asks nothing, and whose workers ask a GPU and nothing else.
func bareJob(t *testing.T, name string) string {
	t.Helper()
	return edited(t, stack.RayJob(name, 2, 1, "SUCCEEDED", "1h"), func(object map[string]any) {
		cluster := object["spec"].(map[string]any)["rayClusterSpec"].(map[string]any)
		container := func(group any) map[string]any {
			template := group.(map[string]any)["template"].(map[string]any)
			return template["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
		}
		delete(container(cluster["headGroupSpec"]), "resources")
		one := map[string]any{"nvidia.com/gpu": "1"}
		container(cluster["workerGroupSpecs"].([]any)[0])["resources"] = map[string]any{"requests": one, "limits": one}
	})
}

// TestAGangAsksForTheDefaultsOfItsNamespace: containers without requests get those of a
// LimitRange from the API server, so that is reserved for them, exactly, and a second gang
// that would fit without them waits.
func TestAGangAsksForTheDefaultsOfItsNamespace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.heard.Listen(w.ctx, w.Bus, bus.CapacityStream, "muster.capacity.*.namespace.*")
	limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "defaults"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
		Type:           corev1.LimitTypeContainer,
		Default:        corev1.ResourceList{"cpu": apiresource.MustParse("2"), "memory": apiresource.MustParse("3Gi")},
		DefaultRequest: corev1.ResourceList{"cpu": apiresource.MustParse("1500m"), "memory": apiresource.MustParse("2Gi")},
	}}}}
	if _, err := w.Kube.CoreV1().LimitRanges(w.Namespace).Create(w.ctx, limits, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(w, "the defaults of the namespace", func(e *event.NamespaceObserved) bool {
		return e.Namespace == w.Namespace && e.Defaults.Equal(resource.List{"cpu": 1500, "memory": 2 << 30})
	})
	w.nodes("gpu", 1, "cpu=8", "memory=64Gi", "nvidia.com/gpu=8") // which comes after the defaults
	id := w.submit(bareJob(t, "first"))
	w.reaches(id, workload.Running)
	reserved := map[string]resource.List{}
	for _, set := range w.one(id).PodSets {
		reserved[set.Name] = set.Template.Requests
	}
	if got := reserved["workers"]; got["cpu"] != 1500 || got["memory"] != 2<<30 || got["nvidia.com/gpu"] != 1 {
		t.Errorf("a worker has %v", got)
	}
	for _, pod := range w.pods(id) {
		asks, err := kube.Requests(&pod)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(asks, reserved[pod.Labels[kube.PodSetLabel]]); diff != "" {
			t.Errorf("pod %s asks for other amounts than are reserved (-asks +reserved):\n%s", pod.Name, diff)
		}
	}
	w.waits(w.submit(bareJob(t, "second")), workload.ReasonFit)
}
