package e2e

import (
	"encoding/json"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

// TestACheckpointOnTheObjectCounts: an annotation of a live object is stored with the workload.
func TestACheckpointOnTheObjectCounts(t *testing.T) {
	t.Parallel()
	w := ruled(t, workload.Rules{})
	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=4")
	id := w.submit(stack.RayCluster("saves", 1, 1))
	w.reaches(id, workload.Running)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		kube.LastCheckpointKey: time.Now().Add(time.Hour).Format(time.RFC3339), // what is to come counts as now
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.rayClusters().Patch(t.Context(), "saves", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.until("the checkpoint is stored", func() bool {
		r := w.one(id)
		return r.Saved() != nil
	})
	record := w.one(id)
	saved := record.Saved()
	if saved.Attempt != 1 || saved.Count != 1 || saved.At.After(time.Now()) {
		t.Errorf("stored is %+v", saved)
	}
}
