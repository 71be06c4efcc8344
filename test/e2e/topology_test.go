package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

// racked applies a queue "user-queue" whose flavor has a Topology of blocks and racks, and labels
// the nodes of a group with the block and rack of each.
func (w *world) racked(group string, places ...string) {
	w.t.Helper()
	apply := []json.RawMessage{}
	for _, object := range []string{
		`{"kind":"Topology","metadata":{"name":"racks"},"spec":{"levels":[{"nodeLabel":"example.com/block"},{"nodeLabel":"example.com/rack"},{"nodeLabel":"kubernetes.io/hostname"}]}}`,
		`{"kind":"ResourceFlavor","metadata":{"name":"racked"},"spec":{"topologyName":"racks"}}`,
		`{"kind":"ClusterQueue","metadata":{"name":"cluster-queue"},"spec":{"namespaceSelector":{},
			"resourceGroups":[{"coveredResources":["cpu","memory","nvidia.com/gpu"],"flavors":[{"name":"racked","resources":[
				{"name":"cpu","nominalQuota":100},{"name":"memory","nominalQuota":"1000Gi"},{"name":"nvidia.com/gpu","nominalQuota":100}]}]}]}}`,
		`{"kind":"LocalQueue","metadata":{"namespace":"` + w.Namespace + `","name":"user-queue"},"spec":{"clusterQueue":"cluster-queue"}}`,
	} {
		apply = append(apply, json.RawMessage(`{"apiVersion":"kueue.x-k8s.io/v1beta1",`+object[1:]))
	}
	if _, err := w.Queries.Configure(w.ctx, "", query.ConfigureRequest{Apply: apply}); err != nil {
		w.t.Fatal(err)
	}
	for i, place := range places {
		block, rack, _ := strings.Cut(place, "/")
		patch := fmt.Sprintf(`{"metadata": {"labels": {"example.com/block": %q, "example.com/rack": %q}}}`, block, rack)
		if _, err := w.Kube.CoreV1().Nodes().Patch(w.ctx, w.NodeName(group, i), types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
	w.until("the racks are known", func() bool {
		labelled := 0
		for _, n := range w.knownNodes() {
			if n.Labels["example.com/rack"] != "" {
				labelled++
			}
		}
		return labelled == len(places)
	})
}

// A gang that must be in one rack, in a Topology of blocks and racks, where racks of one name are in
// two blocks: it lands in one of them, and the next one waits for the topology.
func TestAGangIsInOneRackOfItsTopology(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n", 4, "cpu=8", "memory=32Gi", "nvidia.com/gpu=1")
	w.racked("n", "a/1", "b/1", "b/1", "a/2")
	manifest := func(name, level string) []byte {
		return []byte(stack.WorkerTemplate(stack.RayCluster(name, 2, 1), func(template map[string]any) {
			template["metadata"] = map[string]any{"annotations": map[string]any{"kueue.x-k8s.io/podset-required-topology": level}}
		}))
	}
	id := w.publish("user-queue", "", manifest("one", "example.com/rack"))
	w.reaches(id, workload.Running)
	w.asPlanned(id)
	for _, p := range w.one(id).Placements {
		if p.PodSet == "workers" && p.Node != w.NodeName("n", 1) && p.Node != w.NodeName("n", 2) {
			t.Errorf("a worker is on %s, want the two nodes of rack 1 in block b", p.Node)
		}
	}
	why := w.waits(w.publish("user-queue", "", manifest("two", "example.com/rack")), workload.ReasonTopology)
	if !strings.Contains(why.Message, `must be all in one domain of "example.com/block,example.com/rack"`) {
		t.Errorf("the reason is %q", why.Message)
	}
	block := w.publish("user-queue", "", manifest("three", "example.com/block"))
	w.reaches(block, workload.Running)
	w.asPlanned(block)
	why = w.waits(w.publish("user-queue", "", manifest("four", "example.com/zone")), workload.ReasonQuota, workload.ReasonNeverFits)
	if !strings.Contains(why.Message, `its Topology "racks" has no level "example.com/zone"`) {
		t.Errorf("the reason is %q", why.Message)
	}
}
