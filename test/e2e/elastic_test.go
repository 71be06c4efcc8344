package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

// scale changes the size of a cluster's workers as its owner does.
func (w *world) scale(name string, workers int) {
	w.t.Helper()
	patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/workerGroupSpecs/0/replicas","value":%[1]d},
		{"op":"replace","path":"/spec/workerGroupSpecs/0/minReplicas","value":%[1]d},
		{"op":"replace","path":"/spec/workerGroupSpecs/0/maxReplicas","value":%[1]d}]`, workers)
	if _, err := w.rayClusters().Patch(w.ctx, name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// grows waits until a running workload says that it waits for more places.
func (w *world) grows(id workload.ID, words string) {
	w.t.Helper()
	await(w, fmt.Sprintf("workload %s asks for %s", id, words), func(e *event.WorkloadChanged) bool {
		return e.ID == id && e.Phase == workload.Running && e.Reason != nil && e.Reason.Kind == workload.ReasonGrowing && strings.Contains(e.Reason.Message, words)
	})
}

// sized waits until a workload has places for the number of workers, and that many run on
// these.
func (w *world) sized(id workload.ID, workers int) {
	w.t.Helper()
	w.sizedSet(id, "workers", workers)
}

// sizedSet is sized for the pod set of the given name.
func (w *world) sizedSet(id workload.ID, set string, pods int) {
	w.t.Helper()
	w.untilPods(fmt.Sprintf("workload %s has %d pods of %s on their places", id, pods, set), func() bool {
		record, placed, all := w.one(id), map[string]int{}, 0
		for _, p := range record.Placements {
			if p.PodSet == set {
				placed[p.Node] += p.Pods
				all += p.Pods
			}
		}
		for _, pod := range w.pods(id) {
			if pod.Labels[kube.PodSetLabel] == set {
				placed[pod.Spec.NodeName]--
			}
		}
		for _, missing := range placed {
			if missing != 0 {
				return false
			}
		}
		return all == pods && record.Reason == nil
	})
}

// started counts the pods of a workload that are beyond their gates.
func (w *world) started(id workload.ID) int {
	w.t.Helper()
	started := 0
	for _, pod := range w.pods(id) {
		if len(pod.Spec.SchedulingGates) == 0 {
			started++
		}
	}
	return started
}

// The owner of a cluster makes it larger: the difference is admitted all or none,
// and until then its pods wait at their gates and take nothing. Made smaller, it
// gives its places to who waits as soon as the pods are gone.
func TestTheOwnerChangesTheSize(t *testing.T) {
	t.Parallel()
	w := ruled(t, workload.Rules{Life: workload.Life{ReadyDeadline: seconds(10)}})
	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=3")
	id := w.submit(stack.RayCluster("gang", 2, 1))
	w.reaches(id, workload.Running)
	w.scale("gang", 4)
	w.grows(id, "2 more")
	w.untilPods("KubeRay has created the pods", func() bool { return len(w.pods(id)) == 5 })
	if started := w.started(id); started != 3 {
		t.Errorf("%d pods have started, want 3", started)
	}
	if answer, err := w.Queries.Explain(t.Context(), query.ExplainRequest{ID: id}); err != nil || answer.Reason.Kind != workload.ReasonGrowing || len(answer.Changes) == 0 {
		t.Errorf("explained %+v, %v", answer, err)
	}
	// For longer than its ready deadline nothing happens to it: a gang that comes
	// and goes meanwhile, on the GPU that is not enough for two, shows that time has
	// passed.
	other := w.submit(stack.Annotated(stack.RayCluster("other", 1, 1), kube.MaxRunTimeKey, "11s"))
	w.reaches(other, workload.Cancelled)
	w.released(other)
	if record := w.one(id); record.Phase != workload.Running || record.Attempt != 1 || record.Reason == nil {
		t.Errorf("it is %s, attempt %d, because of %+v", record.Phase, record.Attempt, record.Reason)
	}
	w.nodes("more", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=1")
	w.sized(id, 4)
	w.asPlanned(id)

	next := w.submit(stack.RayCluster("next", 3, 1))
	w.waits(next, workload.ReasonFit)
	w.scale("gang", 1)
	w.sized(id, 1)
	w.reaches(next, workload.Running)
	w.asPlanned(next)
}

// A size that is changed while a service is away is heard of when it is back, and
// nothing is reserved or started twice.
func TestASizeChangesWhileAServiceIsAway(t *testing.T) {
	t.Parallel()
	for _, service := range stack.Services() {
		t.Run(service, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2")
			id := w.submit(stack.RayCluster("gang", 2, 1))
			w.reaches(id, workload.Running)
			w.scale("gang", 4)
			w.grows(id, "2 more")
			if err := w.StopService(service); err != nil {
				t.Fatal(err)
			}
			if err := w.AddNodes(t.Context(), "more", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=2"); err != nil {
				t.Fatal(err)
			}
			if err := w.StartService(t.Context(), service); err != nil {
				t.Fatal(err)
			}
			w.sized(id, 4)
			w.asPlanned(id)
			if err := w.StopService(service); err != nil {
				t.Fatal(err)
			}
			w.scale("gang", 1)
			w.untilPods("KubeRay has taken three workers away", func() bool { return len(w.pods(id)) == 2 })
			if err := w.StartService(t.Context(), service); err != nil {
				t.Fatal(err)
			}
			w.sized(id, 1)
			if record := w.one(id); record.Attempt != 1 || record.Phase != workload.Running {
				t.Errorf("it is %s, attempt %d", record.Phase, record.Attempt)
			}
		})
	}
}

// A cluster without workers is idle, and ends after its idle time; one that
// an annotation says has not been used ends with its workers.
func TestIdleClustersEnd(t *testing.T) {
	t.Parallel()
	w := ruled(t, workload.Rules{Life: workload.Life{IdleTime: seconds(2)}})
	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=4")
	busy := w.submit(stack.RayCluster("busy", 1, 1))
	w.reaches(busy, workload.Running)
	empty := w.submit(edited(t, autoscaled(t, stack.RayCluster("empty", 1, 1), 1, 0, 3), func(object map[string]any) {
		object["metadata"].(map[string]any)["annotations"] = map[string]any{kube.AutoscalingKey: "minimum"}
	}))
	w.reaches(empty, workload.Running)
	w.sized(empty, 1)
	w.takeAway(empty, 1)
	if reason := w.reaches(empty, workload.Cancelled).Reason; reason.Kind != workload.ReasonIdle {
		t.Errorf("without workers it ended because of %+v", reason)
	}
	w.nothingOf(empty)
	if record := w.one(busy); record.Phase != workload.Running {
		t.Fatalf("a cluster with workers is %s because of %+v", record.Phase, record.Reason)
	}
	used, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		kube.LastUsedKey: time.Now().Add(time.Hour).Format(time.RFC3339), // what is to come counts as now
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.rayClusters().Patch(t.Context(), "busy", types.MergePatchType, used, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if reason := w.reaches(busy, workload.Cancelled).Reason; reason.Kind != workload.ReasonIdle || !strings.Contains(reason.Message, "last use") {
		t.Errorf("unused it ended because of %+v", reason)
	}
	w.nothingOf(busy)
}

// Where the scheduler is trusted it is counted, and said, how many pods it placed
// elsewhere than planned.
func TestMisplacedPodsAreCounted(t *testing.T) {
	t.Parallel()
	w := ruled(t, workload.Rules{Placement: workload.Trusted})
	w.nodes("gpu", 3, "cpu=2", "memory=32Gi", "nvidia.com/gpu=1")
	id := w.submit(stack.RayCluster("gang", 1, 1))
	w.reaches(id, workload.Running)
	planned := map[string]string{} // node by pod set
	for _, p := range w.one(id).Placements {
		planned[p.PodSet] = p.Node
	}
	misplaced := func() (n int) {
		for _, pod := range w.pods(id) {
			if pod.Spec.NodeName != planned[pod.Labels[kube.PodSetLabel]] {
				n++
			}
		}
		return n
	}
	if misplaced() == 0 { // the scheduler happened to do as planned
		for i := range 3 {
			if name := w.NodeName("gpu", i); name != planned["workers"] {
				for _, pod := range w.pods(id) {
					if pod.Labels[kube.PodSetLabel] == "workers" {
						w.bindElsewhere(pod, name)
					}
				}
				break
			}
		}
	}
	await(w, "it says how many pods are beside the plan", func(e *event.WorkloadChanged) bool {
		return e.ID == id && e.Phase == workload.Running && e.Reason != nil && e.Reason.Kind == workload.ReasonBesidePlan &&
			strings.Contains(e.Reason.Message, fmt.Sprintf("%d of 2", misplaced()))
	})
}

// bindElsewhere puts a copy of a pod on another node, and takes the pod away.
func (w *world) bindElsewhere(pod corev1.Pod, node string) {
	w.t.Helper()
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod.Name + "-moved", Labels: pod.Labels, OwnerReferences: pod.OwnerReferences}, Spec: pod.Spec}
	other.Spec.NodeName = node
	if _, err := w.Kube.CoreV1().Pods(pod.Namespace).Create(w.ctx, other, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	now := int64(0)
	if err := w.Kube.CoreV1().Pods(pod.Namespace).Delete(w.ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		w.t.Fatal(err)
	}
}

// takeAway takes the last workers of a cluster away as Ray's autoscaler
// does: it names the pods, for KubeRay chooses none itself while one is there.
func (w *world) takeAway(id workload.ID, count int) {
	w.t.Helper()
	var workers []string
	for _, pod := range w.pods(id) {
		if pod.Labels[kube.PodSetLabel] == "workers" {
			workers = append(workers, pod.Name)
		}
	}
	left := len(workers) - count
	named, err := json.Marshal(workers[left:])
	if err != nil {
		w.t.Fatal(err)
	}
	w.patch("rayclusters", id, fmt.Sprintf(`[{"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": %d},
		{"op": "add", "path": "/spec/workerGroupSpecs/0/scaleStrategy", "value": {"workersToDelete": %s}}]`, left, named))
}

// A cluster whose workers may be fewer starts with those that have room: KubeRay creates
// these alone, and its owner makes it larger later.
func TestAClusterStartsWithFewerWorkers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("gpu", 1, "cpu=16", "memory=64Gi", "nvidia.com/gpu=3")
	id := w.submit(edited(t, stack.RayCluster("some", 5, 1), func(object map[string]any) {
		group := object["spec"].(map[string]any)["workerGroupSpecs"].([]any)[0].(map[string]any)
		group["template"].(map[string]any)["metadata"] = map[string]any{"annotations": map[string]any{kube.MinReplicasKey: "2"}}
	}))
	w.reaches(id, workload.Running)
	w.sized(id, 3)
	w.patch("rayclusters", id, `[{"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": 4}, {"op": "replace", "path": "/spec/workerGroupSpecs/0/maxReplicas", "value": 5}]`)
	w.grows(id, "1 more")
	w.nodes("more", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=1")
	w.sized(id, 4)
	next := w.submit(edited(t, stack.RayCluster("next", 5, 1), func(object map[string]any) {
		group := object["spec"].(map[string]any)["workerGroupSpecs"].([]any)[0].(map[string]any)
		group["template"].(map[string]any)["metadata"] = map[string]any{"annotations": map[string]any{kube.MinReplicasKey: "2"}}
	}))
	w.waits(next, workload.ReasonFit)
	w.cancel(id)
	w.reaches(next, workload.Running)
	w.sized(next, 4)
}

// TestAClusterShrinksForAnother: a cluster above its minimum gives up as many workers as a
// workload of a higher priority needs, and runs on; that one starts when their pods are gone.
func TestAClusterShrinksForAnother(t *testing.T) {
	t.Parallel()
	w := startWorld(t, stack.Options{Policy: quota.Config{
		Priorities:    []quota.PriorityClass{{Name: "urgent", Value: 100}},
		ClusterQueues: []quota.ClusterQueue{{Name: "default", Preemption: &quota.Preemption{WithinClusterQueue: quota.LowerPriority}}},
	}})
	w.nodes("gpu", 1, "cpu=16", "memory=64Gi", "nvidia.com/gpu=4")
	id := w.submit(edited(t, stack.RayCluster("some", 4, 1), func(object map[string]any) {
		group := object["spec"].(map[string]any)["workerGroupSpecs"].([]any)[0].(map[string]any)
		group["template"].(map[string]any)["metadata"] = map[string]any{"annotations": map[string]any{kube.MinReplicasKey: "1"}}
	}))
	w.reaches(id, workload.Running)
	urgent := w.submit(stack.Labelled(stack.RayCluster("urgent", 2, 1), "muster.dev/priority-class", "urgent"))
	await(w, "the cluster gives up workers for the urgent one", func(e *event.WorkloadChanged) bool {
		return e.ID == id && e.Phase == workload.Running && e.Reason != nil && e.Reason.Kind == workload.ReasonShrunk && e.Reason.Preemption.Preemptor == urgent
	})
	w.reaches(urgent, workload.Running)
	w.sized(urgent, 2)
	w.sized(id, 2)
	if record := w.one(id); record.Attempt != 1 || record.Phase != workload.Running {
		t.Errorf("the cluster is %s in attempt %d, want it to run on in its first", record.Phase, record.Attempt)
	}
}
