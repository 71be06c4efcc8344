package e2e

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/pkg/spec/workload"
)

// replicaLabel is how KubeRay names the replica of several hosts that a pod belongs to.
const replicaLabel = "ray.io/worker-group-replica-name"

// TestPodsOfTPUSlicesAreLost: a gang of two TPU slices, of two hosts each, runs with each
// slice in one node pool. Pods of it are lost while their nodes stay. KubeRay replaces each
// slice that lost a pod whole, and its new pods are in one node pool again; the head stays,
// a slice that lost none stays, and the gang is not evicted.
func TestPodsOfTPUSlicesAreLost(t *testing.T) {
	t.Parallel()
	deleted := func(w *world, pod string) error {
		return w.Kube.CoreV1().Pods(w.Namespace).Delete(w.ctx, pod, metav1.DeleteOptions{})
	}
	failed := func(w *world, pod string) error {
		_, err := w.Kube.CoreV1().Pods(w.Namespace).Patch(w.ctx, pod, types.StrategicMergePatchType,
			[]byte(`{"status": {"phase": "Failed", "reason": "Evicted"}}`), metav1.PatchOptions{}, "status")
		return err
	}
	for name, c := range map[string]struct {
		lose   func(w *world, pod string) error
		slices int // that lose a pod
	}{
		"deleted": {deleted, 1}, "failed": {failed, 1}, "deleted in both slices": {deleted, 2}, "failed in both slices": {failed, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := ruled(t, workload.Rules{ForceAfter: seconds(1)})
			w.nodes("cpu", 1, "cpu=8", "memory=64Gi", "ephemeral-storage=100Gi")
			w.tpuHosts("slice-a", 2)
			w.tpuHosts("slice-b", 2)
			id := w.submit(twoTPUSlices(t))
			w.reaches(id, workload.Running)
			w.inOnePool(id)
			head, broken := w.headUID(id), map[string]bool{}
			before := w.replicasOf(id)
			for replica, pods := range before {
				if len(broken) < c.slices {
					broken[replica] = true
					if err := c.lose(w, pods[0].Name); err != nil {
						t.Fatal(err)
					}
				}
			}
			w.untilPods("the broken slices are replaced whole", func() bool { return w.replaced(id, broken) })
			w.inOnePool(id)
			w.asPlanned(id)
			for replica, pods := range before {
				if now := w.replicasOf(id)[replica]; !broken[replica] && !slices.Equal(uids(pods), uids(now)) {
					t.Errorf("the pods of the slice that lost none were %v, now %v", uids(pods), uids(now))
				}
			}
			if record := w.one(id); record.Attempt != 1 || w.headUID(id) != head {
				t.Errorf("attempt %d, head %s, before %s", record.Attempt, w.headUID(id), head)
			}
		})
	}
}

// replaced reports whether a gang runs whole without the given replicas.
func (w *world) replaced(id workload.ID, broken map[string]bool) bool {
	now := w.replicasOf(id)
	for replica, pods := range now {
		if broken[replica] || len(pods) != 2 {
			return false
		}
		for _, pod := range pods {
			if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
				return false
			}
		}
	}
	record := w.one(id)
	return len(now) == 2 && record.Phase == workload.Running && record.Reason == nil
}

// inOnePool checks that the pods of each replica are on nodes of one node pool.
func (w *world) inOnePool(id workload.ID) {
	w.t.Helper()
	pools := map[string]string{}
	nodes, err := w.Kube.CoreV1().Nodes().List(w.ctx, metav1.ListOptions{LabelSelector: nodePoolLabel})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, node := range nodes.Items {
		pools[node.Name] = node.Labels[nodePoolLabel]
	}
	for replica, pods := range w.replicasOf(id) {
		if one, other := pools[pods[0].Spec.NodeName], pools[pods[len(pods)-1].Spec.NodeName]; len(pods) != 2 || one == "" || one != other {
			w.t.Errorf("replica %s has %d pods, in the node pools %q and %q", replica, len(pods), one, other)
		}
	}
}

// replicasOf returns the pods of a workload by the name of their replica.
func (w *world) replicasOf(id workload.ID) map[string][]corev1.Pod {
	w.t.Helper()
	replicas := map[string][]corev1.Pod{}
	for _, pod := range w.pods(id) {
		if name := pod.Labels[replicaLabel]; name != "" {
			replicas[name] = append(replicas[name], pod)
		}
	}
	return replicas
}

func uids(pods []corev1.Pod) []string {
	var ids []string
	for _, pod := range pods {
		ids = append(ids, string(pod.UID))
	}
	slices.Sort(ids)
	return ids
}

// twoTPUSlices is KubeRay's sample with two replicas, each in one node pool.
func twoTPUSlices(t *testing.T) string {
	t.Helper()
	const replicas, template = "- replicas: 1\n", "    template:\n      spec:\n"
	sample := tpuSample(t)
	workers := strings.Index(sample, "workerGroupSpecs:")
	if workers < 0 || !strings.Contains(sample[workers:], replicas) || !strings.Contains(sample[workers:], template) {
		t.Fatalf("KubeRay's sample of a TPU slice has changed:\n%s", sample)
	}
	group := strings.Replace(sample[workers:], replicas, "- replicas: 2\n", 1)
	group = strings.Replace(group, template, "    template:\n      metadata:\n        annotations:\n          kueue.x-k8s.io/podset-slice-required-topology: "+nodePoolLabel+"\n      spec:\n", 1)
	return sample[:workers] + strings.Replace(group, "maxReplicas: 1", "maxReplicas: 2", 1)
}
