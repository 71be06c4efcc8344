package e2e

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// TestAGangBeyondItsLimitRangeIsHeld: the API server refuses its pods, so it waits, and a gang
// behind it runs. It starts when the maximum of the LimitRange is raised.
func TestAGangBeyondItsLimitRangeIsHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.heard.Listen(w.ctx, w.Bus, bus.CapacityStream, "muster.capacity.*.namespace.*")
	limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Name: "small"}, Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
		Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{"cpu": apiresource.MustParse("3")},
	}}}}
	limits, err := w.Kube.CoreV1().LimitRanges(w.Namespace).Create(w.ctx, limits, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	bounded := func(cores int64) func(*event.NamespaceObserved) bool {
		return func(e *event.NamespaceObserved) bool {
			return e.Namespace == w.Namespace && len(e.Ranges) == 1 && e.Ranges[0].Items[0].Max["cpu"] == 1000*cores
		}
	}
	await(w, "the LimitRange", bounded(3))
	w.nodes("cpu", 2, "cpu=16", "memory=64Gi")
	job := func(name, cores string) string {
		return edited(t, stack.RayJob(name, 1, 0, "SUCCEEDED", "1h"), func(object map[string]any) {
			cluster := object["spec"].(map[string]any)["rayClusterSpec"].(map[string]any)
			group := cluster["workerGroupSpecs"].([]any)[0].(map[string]any)
			container := group["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
			amounts := map[string]any{"cpu": cores, "memory": "1Gi"}
			container["resources"] = map[string]any{"requests": amounts, "limits": amounts}
		})
	}
	large := w.submit(job("large", "4"))
	why := w.waits(large, workload.ReasonHeld)
	for _, part := range []string{`of pod set "workers" has a limit of cpu 4, and LimitRange "small" allows a container 3 at most`, w.Namespace} {
		if !strings.Contains(why.Message, part) {
			t.Errorf("it waits because %q, want %q in it", why.Message, part)
		}
	}
	amounts := corev1.ResourceList{"cpu": apiresource.MustParse("4")}
	_, err = w.Kube.CoreV1().Pods(w.Namespace).Create(w.ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "alike"}, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Requests: amounts, Limits: amounts}}},
	}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "maximum cpu usage per Container is 3") {
		t.Errorf("the API server answers a pod like that: %v", err)
	}
	w.reaches(w.submit(job("small", "3")), workload.Running)
	limits.Spec.Limits[0].Max["cpu"] = apiresource.MustParse("4")
	if _, err := w.Kube.CoreV1().LimitRanges(w.Namespace).Update(w.ctx, limits, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(w, "the new maximum", bounded(4))
	w.reaches(large, workload.Running)
}
