package e2e

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/workload"
)

// TestTPUSlicesOfSeveralHosts: KubeRay's sample of a TPU slice of two hosts is admitted whole
// and runs as planned. When a host is lost, KubeRay replaces every pod of its slice, and the
// new ones run on places without the lost node; the head stays. With no host to replace the
// lost one, the gang is evicted whole.
func TestTPUSlicesOfSeveralHosts(t *testing.T) {
	t.Parallel()
	for name, spares := range map[string]int{"a spare host": 1, "no spare host": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := ruled(t, workload.Rules{ForceAfter: seconds(1)})
			w.nodes("cpu", 1, "cpu=8", "memory=64Gi", "ephemeral-storage=100Gi")
			w.tpuHosts("host", 1)
			id := w.submit(tpuSample(t))
			if reason := w.waits(id, workload.ReasonFit); reason.Shortage == nil {
				t.Errorf("with one host of two it waits because of %+v", reason)
			}
			w.nothingOf(id)
			w.tpuHosts("second", 1)
			w.reaches(id, workload.Running)
			w.asPlanned(id)
			if w.tpuHosts("spare", spares); spares == 0 {
				w.losesASlice(id)
				return
			}
			w.replacesASlice(id)
		})
	}
}

// replacesASlice loses a host of a running slice that has a spare one.
func (w *world) replacesASlice(id workload.ID) {
	w.t.Helper()
	head, lost, before := w.headUID(id), w.placeOf(id, "tpu-group"), w.workersOf(id)
	if err := w.Node(w.ctx, "remove", lost); err != nil {
		w.t.Fatal(err)
	}
	w.healed(id, lost)
	w.asPlanned(id)
	for _, uid := range w.workersOf(id) {
		if slices.Contains(before, uid) {
			w.t.Errorf("pod %s of the broken slice is still there", uid)
		}
	}
	if record := w.one(id); record.Attempt != 1 || w.headUID(id) != head {
		w.t.Errorf("attempt %d, head %s, before %s", record.Attempt, w.headUID(id), head)
	}
}

// losesASlice loses a host of a running slice that has no spare one.
func (w *world) losesASlice(id workload.ID) {
	w.t.Helper()
	if err := w.Node(w.ctx, "remove", w.placeOf(id, "tpu-group")); err != nil {
		w.t.Fatal(err)
	}
	w.reaches(id, workload.Evicting)
	w.untilPods("nothing of the slice is left", func() bool { return len(w.pods(id)) == 0 })
	w.tpuHosts("later", 1)
	w.until("the slice runs again, whole", func() bool {
		record := w.one(id)
		return record.Phase == workload.Running && record.Attempt == 2
	})
	w.asPlanned(id)
}

// workersOf lists the UIDs of a workload's worker pods.
func (w *world) workersOf(id workload.ID) []string {
	w.t.Helper()
	var uids []string
	for _, pod := range w.pods(id) {
		if pod.Labels[kube.PodSetLabel] != "headgroup" {
			uids = append(uids, string(pod.UID))
		}
	}
	return uids
}

// tpuHosts adds hosts of TPU slices of two hosts, as GKE labels them.
func (w *world) tpuHosts(group string, count int) {
	w.t.Helper()
	w.tpuFleet(group, count, "tpu-v4-podslice", "2x2x2", "cpu=1", "memory=64Gi", "ephemeral-storage=100Gi")
}

// tpuFleet adds hosts with four TPUs each, as GKE labels them: the hosts of a group are one
// node pool.
func (w *world) tpuFleet(group string, count int, accelerator, topology string, resources ...string) {
	w.t.Helper()
	if count == 0 {
		return
	}
	if err := w.AddNodes(w.ctx, group, count, append(resources, "google.com/tpu=4")...); err != nil {
		w.t.Fatal(err)
	}
	patch := fmt.Sprintf(`{"metadata": {"labels": {"cloud.google.com/gke-tpu-accelerator": %q, "cloud.google.com/gke-tpu-topology": %q, %q: %q}}}`,
		accelerator, topology, nodePoolLabel, group)
	for i := range count {
		if _, err := w.Kube.CoreV1().Nodes().Patch(w.ctx, w.NodeName(group, i), types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// nodePoolLabel is GKE's label of the node pool: the hosts of a TPU slice are one.
const nodePoolLabel = "cloud.google.com/gke-nodepool"

// tpuSample is KubeRay's sample of a slice of two hosts.
func tpuSample(t *testing.T) string {
	t.Helper()
	return string(sampleNamed(t, "ray-cluster.tpu-v4-multihost.yaml").manifest)
}

// sampleNamed is one of KubeRay's samples.
func sampleNamed(t *testing.T, name string) sample {
	t.Helper()
	for _, sample := range readSamples(t) {
		if sample.name == name {
			return sample
		}
	}
	t.Fatalf("KubeRay has no sample %s", name)
	return sample{}
}
