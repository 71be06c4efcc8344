package e2e

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

// A gang that must be in one rack, a worker to a node, with a port of the node
// each: planned, obeyed by the real scheduler, and waiting for the topology when
// no rack takes it any more.
func TestConstraintsOnDomainsAreObeyed(t *testing.T) {
	t.Parallel()
	w := startWorld(t, stack.Options{Rules: workload.Rules{Pods: workload.PodPolicy{HostPorts: true}}})
	w.nodes("n", 4, "cpu=4", "memory=32Gi", "nvidia.com/gpu=2")
	for i := range 4 {
		patch := fmt.Sprintf(`{"metadata": {"labels": {"example.com/rack": "rack-%d"}}}`, i%2)
		if _, err := w.Kube.CoreV1().Nodes().Patch(t.Context(), w.NodeName("n", i), types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w.until("the racks are known", func() bool {
		labelled := 0
		for _, n := range w.knownNodes() {
			if n.Labels["example.com/rack"] != "" {
				labelled++
			}
		}
		return labelled == 4
	})
	manifest := func(name string) string {
		return stack.WorkerTemplate(stack.RayCluster(name, 2, 1), func(template map[string]any) {
			template["metadata"] = map[string]any{"annotations": map[string]any{"kueue.x-k8s.io/podset-required-topology": "example.com/rack"}}
			spec := template["spec"].(map[string]any)
			spec["containers"].([]any)[0].(map[string]any)["ports"] = []any{map[string]any{"containerPort": 9999, "hostPort": 9999}}
			spec["affinity"] = map[string]any{"podAntiAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": []any{map[string]any{
				"topologyKey": "kubernetes.io/hostname", "labelSelector": map[string]any{"matchLabels": map[string]any{"ray.io/group": "workers"}},
				"matchLabelKeys": []any{"ray.io/cluster"},
			}}}}
		})
	}
	for _, name := range []string{"one", "two"} {
		id := w.submit(manifest(name))
		w.reaches(id, workload.Running)
		w.asPlanned(id)
		racks := map[string]int{}
		for _, p := range w.one(id).Placements {
			if p.PodSet == "workers" {
				racks[p.Node[len(p.Node)-1:]] += p.Pods
			}
		}
		if len(racks) != 2 || (racks["0"] == 0) != (racks["2"] == 0) {
			t.Errorf("%s: workers by node are %v, want nodes 0 and 2, or 1 and 3", name, racks)
		}
	}
	// GPUs are left on every node, but the port is taken.
	reason := w.waits(w.submit(manifest("three")), workload.ReasonFit)
	if !strings.Contains(reason.Message, "4 node(s) didn't have free ports") {
		t.Errorf("the reason is %q, want the ports named", reason.Message)
	}
}
