package e2e

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

// twoFlavors is a queue with nodes of its own first and rented ones, which have a
// taint, when those are used up.
const twoFlavors = `
resourceFlavors:
- name: owned
  nodeLabels: {example.com/kind: owned}
- name: rented
  nodeLabels: {example.com/kind: rented}
  nodeTaints: [{key: example.com/rented, value: "yes", effect: NoSchedule}]
  tolerations: [{key: example.com/rented, operator: Equal, value: "yes", effect: NoSchedule}]
clusterQueues:
- name: default
  quotaCheckStrategy: IgnoreUndeclared
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors:
    - {name: owned, resources: [{name: nvidia.com/gpu, nominalQuota: 2}]}
    - {name: rented, resources: [{name: nvidia.com/gpu, nominalQuota: 4}]}
`

// Gangs get flavors in the order of the queue, the next one when the quota of the
// first is used up, and again the first when it is free. The pods of a pod set
// with a flavor select its nodes and tolerate its taint, the others do not, and
// all of them land there.
func TestGangsLandOnTheNodesOfTheirFlavor(t *testing.T) {
	t.Parallel()
	var policy quota.Config
	if err := yaml.UnmarshalStrict([]byte(twoFlavors), &policy); err != nil {
		t.Fatal(err)
	}
	w := startWorld(t, stack.Options{Policy: policy})
	w.nodes("owned", 1, "cpu=16", "memory=64Gi", "nvidia.com/gpu=8")
	w.nodes("rented", 2, "cpu=16", "memory=64Gi", "nvidia.com/gpu=2")
	for kind, count := range map[string]int{"owned": 1, "rented": 2} {
		for i := range count {
			patch := fmt.Sprintf(`{"metadata": {"labels": {"example.com/kind": %q}}}`, kind)
			if _, err := w.Kube.CoreV1().Nodes().Patch(t.Context(), w.NodeName(kind, i), types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
			if kind == "rented" {
				w.taint(w.NodeName(kind, i), corev1.Taint{Key: "example.com/rented", Value: "yes", Effect: corev1.TaintEffectNoSchedule})
			}
		}
	}
	w.until("the kinds of nodes are known", func() bool {
		labelled, tainted := 0, 0
		for _, n := range w.knownNodes() {
			if n.Labels["example.com/kind"] != "" {
				labelled++
			}
			if len(n.Taints) > 0 {
				tainted++
			}
		}
		return labelled == 3 && tainted == 2
	})

	first := w.submit(stack.RayCluster("first", 2, 1))
	w.reaches(first, workload.Running)
	w.landed(first, "owned")
	second := w.submit(stack.RayCluster("second", 2, 2))
	w.reaches(second, workload.Running)
	w.landed(second, "rented")

	third := w.submit(stack.RayCluster("third", 1, 1))
	if why := w.waits(third, workload.ReasonQuota); why.Quota == nil || why.Quota.Resource != "nvidia.com/gpu" || why.Quota.Available != 0 {
		t.Errorf("the third waits because of %+v", why)
	}
	w.cancel(first)
	w.reaches(third, workload.Running)
	w.landed(third, "owned")
}

// landed checks where the pods of a running gang are, and what they ask for.
func (w *world) landed(id workload.ID, kind string) {
	w.t.Helper()
	w.asPlanned(id)
	kinds := map[string]string{}
	for _, n := range w.knownNodes() {
		kinds[n.Name] = n.Labels["example.com/kind"]
	}
	workers := 0
	for _, pod := range w.pods(id) {
		selects := pod.Spec.NodeSelector["example.com/kind"]
		tolerates := slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
			return t.Key == "example.com/rented" && t.Value == "yes" && t.Effect == corev1.TaintEffectNoSchedule
		})
		if pod.Labels[kube.PodSetLabel] != "workers" {
			if selects != "" || tolerates {
				w.t.Errorf("pod %s asks for nothing that has flavors, and selects %q (tolerates rented nodes: %t)", pod.Name, selects, tolerates)
			}
			continue
		}
		workers++
		if kinds[pod.Spec.NodeName] != kind || selects != kind || tolerates != (kind == "rented") {
			w.t.Errorf("pod %s is on node %s of kind %q, selects %q (tolerates rented nodes: %t), want %q",
				pod.Name, pod.Spec.NodeName, kinds[pod.Spec.NodeName], selects, tolerates, kind)
		}
	}
	if workers == 0 {
		w.t.Errorf("workload %s has no workers", id)
	}
}
