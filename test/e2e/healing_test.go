package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

func seconds(n int) workload.Duration { return workload.Duration(time.Duration(n) * time.Second) }

// headUID returns which head pod a workload has.
func (w *world) headUID(id workload.ID) types.UID {
	w.t.Helper()
	for _, pod := range w.pods(id) {
		if pod.Labels[kube.PodSetLabel] == "headgroup" {
			return pod.UID
		}
	}
	w.t.Fatalf("workload %s has no head", id)
	return ""
}

// placeOf returns a node on which the pod set has a place.
func (w *world) placeOf(id workload.ID, set string) string {
	w.t.Helper()
	for _, p := range w.one(id).Placements {
		if p.PodSet == set {
			return p.Node
		}
	}
	w.t.Fatalf("workload %s has no place for %s", id, set)
	return ""
}

// healed waits until all pods of a running workload are where its places are now,
// none of them on the node.
func (w *world) healed(id workload.ID, without string) {
	w.t.Helper()
	w.untilPods("workload "+string(id)+" is healed without node "+without, func() bool {
		record := w.one(id)
		wanted := map[string]int{}
		for _, p := range record.Placements {
			if p.Node == without {
				return false
			}
			wanted[p.PodSet+" on "+p.Node] = p.Pods
		}
		for _, pod := range w.pods(id) {
			if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
				wanted[pod.Labels[kube.PodSetLabel]+" on "+pod.Spec.NodeName]--
			}
		}
		for _, missing := range wanted {
			if missing != 0 {
				return false
			}
		}
		return record.Phase == workload.Running && record.Reason == nil
	})
}

// taint puts a taint on a node, or takes all away.
func (w *world) taint(node string, taints ...corev1.Taint) {
	w.t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"taints": taints}})
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.Kube.CoreV1().Nodes().Patch(w.t.Context(), node, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// foreignPod puts a pod that is not Muster's on a node.
func (w *world) foreignPod(name, node string, requests corev1.ResourceList) {
	w.t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{
		NodeName:   node,
		Containers: []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Requests: requests, Limits: requests}}},
	}}
	if _, err := w.Kube.CoreV1().Pods(w.Namespace).Create(w.t.Context(), pod, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// A gang of which KubeRay cannot create all pods is torn down whole when its time
// is over, tried again later, and has failed in the end, with KubeRay's words.
func TestAGangThatCannotBecomeReadyFailsInTheEnd(t *testing.T) {
	t.Parallel()
	once := 1
	w := ruled(t, workload.Rules{
		Requeues: &once, BackoffFirst: seconds(1), ForceAfter: seconds(1),
		Pods: workload.PodPolicy{ServiceAccounts: []string{"default", "absent"}},
	})
	w.nodes("gpu", 1, "cpu=8", "memory=32Gi")
	manifest := stack.Annotated(stack.RayCluster("stuck", 1, 0), kube.ReadyDeadlineKey, "2s")
	id := w.submit(strings.Replace(manifest, `{"spec":{"containers"`, `{"spec":{"serviceAccountName":"absent","containers"`, 1))
	if reason := w.reaches(id, workload.Evicting).Reason; reason.Kind != workload.ReasonNotReady || !strings.Contains(reason.Message, "absent") {
		t.Errorf("evicted because of %+v", reason)
	}
	waiting := await(w, "the back-off", func(e *event.WorkloadChanged) bool { return e.ID == id && e.Phase == workload.Queued && e.Attempt == 2 })
	if waiting.Reason.Kind != workload.ReasonBackoff || waiting.NotBefore.IsZero() {
		t.Errorf("it waits because of %+v until %s", waiting.Reason, waiting.NotBefore)
	}
	if reason := w.reaches(id, workload.Failed).Reason; reason.Kind != workload.ReasonNotReady || !strings.Contains(reason.Message, "absent") {
		t.Errorf("failed because of %+v", reason)
	}
	w.nothingOf(id)
}

// A place that an unmanaged pod takes before the gang has started is replaced; the
// gang starts in its first attempt, whole.
func TestAPlaceTakenByOthersBeforeTheStart(t *testing.T) {
	t.Parallel()
	w := ruled(t, workload.Rules{})
	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=1")
	if err := w.StopService("dispatcher"); err != nil {
		t.Fatal(err)
	}
	id := w.submit(stack.RayCluster("gang", 1, 1))
	w.reaches(id, workload.Admitted)
	taken := w.placeOf(id, "workers")
	w.foreignPod("notebook", taken, corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1")})
	w.nodes("spare", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=1")
	w.until("the place is replaced", func() bool { return w.placeOf(id, "workers") != taken })
	if err := w.StartService(t.Context(), "dispatcher"); err != nil {
		t.Fatal(err)
	}
	w.reaches(id, workload.Running)
	w.asPlanned(id)
	if attempt := w.one(id).Attempt; attempt != 1 {
		t.Errorf("it runs in attempt %d", attempt)
	}
}

// Nodes under a running gang go, stop answering, are drained or tainted: its
// workers get proven places elsewhere, the head stays the same pod.
func TestWorkersAreHealedAndTheHeadStays(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(w *world, node string) error{
		"gone":   func(w *world, node string) error { return w.Node(w.ctx, "remove", node) },
		"broken": func(w *world, node string) error { return w.Node(w.ctx, "break", node) },
		"drained by muster": func(w *world, node string) error {
			w.taint(node, corev1.Taint{Key: capacity.DrainTaint, Effect: corev1.TaintEffectNoSchedule})
			return nil
		},
		"tainted NoExecute": func(w *world, node string) error {
			w.taint(node, corev1.Taint{Key: "repair", Effect: corev1.TaintEffectNoExecute})
			return nil
		},
		"drained by kubectl": func(w *world, node string) error {
			if err := w.Node(w.ctx, "cordon", node); err != nil {
				return err
			}
			return w.evictPods(node)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := ruled(t, workload.Rules{ForceAfter: seconds(1)})
			w.nodes("cpu", 1, "cpu=1", "memory=32Gi") // for the head alone
			w.nodes("gpu", 2, "cpu=1", "memory=32Gi", "nvidia.com/gpu=1")
			id := w.submit(stack.RayCluster("gang", 2, 1))
			w.reaches(id, workload.Running)
			head, lost := w.headUID(id), w.placeOf(id, "workers")
			w.nodes("spare", 1, "cpu=1", "memory=32Gi", "nvidia.com/gpu=1")
			if err := lose(w, lost); err != nil {
				t.Fatal(err)
			}
			w.healed(id, lost)
			if record := w.one(id); record.Attempt != 1 || w.headUID(id) != head {
				t.Errorf("attempt %d, head %s, before %s", record.Attempt, w.headUID(id), head)
			}
		})
	}
}

// evictPods does what kubectl drain does with the pods of a node.
func (w *world) evictPods(node string) error {
	list, err := w.Kube.CoreV1().Pods(w.Namespace).List(w.ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	for i := 0; err == nil && i < len(list.Items); i++ {
		err = w.Kube.CoreV1().Pods(w.Namespace).Delete(w.ctx, list.Items[i].Name, metav1.DeleteOptions{})
	}
	return err
}

// A lost worker for which there is no other place evicts the gang whole; it keeps
// its place in the queue.
func TestWithoutAnotherPlaceTheGangIsEvicted(t *testing.T) {
	t.Parallel()
	w := ruled(t, workload.Rules{})
	w.nodes("cpu", 1, "cpu=1", "memory=32Gi")
	w.nodes("gpu", 2, "cpu=1", "memory=32Gi", "nvidia.com/gpu=1")
	id := w.submit(stack.RayCluster("gang", 2, 1))
	w.reaches(id, workload.Running)
	if err := w.Node(t.Context(), "remove", w.placeOf(id, "workers")); err != nil {
		t.Fatal(err)
	}
	if reason := w.reaches(id, workload.Evicting).Reason; reason.Kind != workload.ReasonNodeLost || !strings.Contains(reason.Message, "no other place") {
		t.Errorf("evicted because of %+v", reason)
	}
	w.waits(id, workload.ReasonFit)
	w.nothingOf(id)
}

// Pods that crash or are deleted are replaced on their places; with the policy
// evict the gang is torn down and queued again.
func TestLostPods(t *testing.T) {
	t.Parallel()
	w := ruled(t, workload.Rules{BackoffFirst: seconds(1)})
	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")
	healing := w.submit(stack.RayCluster("healing", 1, 1))
	evicting := w.submit(stack.Annotated(stack.RayCluster("evicting", 1, 1), kube.OnPodLossKey, workload.EvictOnLoss.String()))
	for _, id := range []workload.ID{healing, evicting} {
		w.reaches(id, workload.Running)
		for _, pod := range w.pods(id) {
			if pod.Labels[kube.PodSetLabel] == "workers" {
				pod.Status.Phase = corev1.PodFailed
				if _, err := w.Kube.CoreV1().Pods(w.Namespace).UpdateStatus(t.Context(), &pod, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	w.healed(healing, "none")
	if attempt := w.one(healing).Attempt; attempt != 1 {
		t.Errorf("the healed gang is in attempt %d", attempt)
	}
	w.until("the other runs again", func() bool {
		record := w.one(evicting)
		return record.Phase == workload.Running && record.Attempt > 1
	})
}

// A drain is announced: by an event, on the object, also where that is wrapped, and
// with the time that the workload asked for to save its work. Then the gang goes,
// and begins again.
func TestADrainIsAnnounced(t *testing.T) {
	t.Parallel()
	for name, wrap := range map[string]func(w *world, manifest string) string{
		"RayCluster": func(_ *world, manifest string) string { return manifest },
		"AppWrapper": func(w *world, manifest string) string { return stack.AppWrapper(w.Namespace, "wrapper", manifest) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := ruled(t, workload.Rules{})
			w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=1")
			id := w.submit(wrap(w, stack.Annotated(stack.RayCluster("gang", 1, 1), kube.CheckpointGraceKey, "3s")))
			w.reaches(id, workload.Running)
			w.drainedWithNotice(id)
		})
	}
}

// drainedWithNotice drains the node of the gang's head, checks that the gang is warned
// and has its time, and lets it run again.
func (w *world) drainedWithNotice(id workload.ID) {
	w.t.Helper()
	head, node := w.headUID(id), w.placeOf(id, "headgroup")
	w.taint(node, corev1.Taint{Key: capacity.DrainTaint, Effect: corev1.TaintEffectNoSchedule})
	announced := await(w, "the announcement", func(e *event.WorkloadChanged) bool { return e.ID == id && !e.EvictAt.IsZero() })
	if announced.Reason.Kind != workload.ReasonDrained {
		w.t.Errorf("announced because of %+v", announced.Reason)
	}
	w.until("the object says so", func() bool {
		object, err := w.rayClusters().Get(w.ctx, "gang", metav1.GetOptions{})
		return err == nil && object.GetAnnotations()[kube.EvictingAtKey] == announced.EvictAt.UTC().Format(time.RFC3339)
	})
	if w.headUID(id) != head || time.Now().After(announced.EvictAt) {
		w.t.Error("the head was gone before its time, or the test is too slow to tell")
	}
	w.reaches(id, workload.Evicting)
	if time.Now().Before(announced.EvictAt) {
		w.t.Error("evicted before its time")
	}
	w.waits(id, workload.ReasonFit)
	w.nothingOf(id)
	w.taint(node)
	w.until("it runs again", func() bool { r := w.one(id); return r.Phase == workload.Running && r.Attempt == 2 })
}

// Pods on a node that does not answer do not end by themselves: they are deleted
// by force after their time, and only then is their place free.
func TestPodsThatDoNotGoAreDeletedByForce(t *testing.T) {
	t.Parallel()
	w := ruled(t, workload.Rules{ForceAfter: seconds(1)})
	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=1")
	manifest := strings.ReplaceAll(stack.RayCluster("gang", 1, 1), `"spec":{"containers"`, `"spec":{"terminationGracePeriodSeconds":1,"containers"`)
	id := w.submit(manifest)
	w.reaches(id, workload.Running)
	if err := w.Node(t.Context(), "break", w.placeOf(id, "workers")); err != nil {
		t.Fatal(err)
	}
	w.cancel(id)
	w.reaches(id, workload.Cancelling)
	w.reaches(id, workload.Cancelled)
	w.nothingOf(id)
}

// A cluster whose time is over is ended, whether it is in use or not.
func TestMaxRunTime(t *testing.T) {
	t.Parallel()
	w := ruled(t, workload.Rules{})
	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=1")
	id := w.submit(stack.Annotated(stack.RayCluster("gang", 1, 1), kube.MaxRunTimeKey, "1s"))
	w.reaches(id, workload.Running)
	if reason := w.reaches(id, workload.Cancelled).Reason; reason.Kind != workload.ReasonMaxRunTime {
		t.Errorf("ended because of %+v", reason)
	}
	w.nothingOf(id)
}

// A trusted queue: pods have no gate and no pin, the scheduler places them, and
// what they take is charged where they are.
func TestATrustedQueueLeavesPlacingToTheScheduler(t *testing.T) {
	t.Parallel()
	w := ruled(t, workload.Rules{Placement: workload.Trusted})
	w.nodes("gpu", 2, "cpu=2", "memory=32Gi", "nvidia.com/gpu=1")
	selector := fmt.Sprintf(`"nodeSelector":{%q:%q},`, "test.muster.dev/pool", w.Pool)
	id := w.submit(strings.ReplaceAll(stack.RayCluster("gang", 2, 1), `"spec":{"containers"`, `"spec":{`+selector+`"containers"`))
	w.reaches(id, workload.Running)
	for _, pod := range w.pods(id) {
		if len(pod.Spec.NodeSelector) != 1 || pod.Spec.NodeName == "" {
			t.Errorf("pod %s is on %q, its selector is %v", pod.Name, pod.Spec.NodeName, pod.Spec.NodeSelector)
		}
	}
	w.cancel(id)
	w.reaches(id, workload.Cancelled)
	w.nothingOf(id)
}
