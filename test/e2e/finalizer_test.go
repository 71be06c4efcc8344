package e2e

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/pkg/spec/workload"
)

// TestAFinalizerThatBlocksARemovalIsNamed: while a finalizer keeps the object of a cancelled
// gang, the gang's reason names it; when it is taken off the gang ends, and nothing is left.
func TestAFinalizerThatBlocksARemovalIsNamed(t *testing.T) {
	t.Parallel()
	w, id := oneGang(t, workload.Rules{}, 2)
	finalizers := func(list string) {
		t.Helper()
		patch := []byte(`{"metadata": {"finalizers": ` + list + `}}`)
		if _, err := w.rayClusters().Patch(t.Context(), "gang", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	finalizers(`["example.com/stuck"]`)
	w.cancel(id)
	w.until("the finalizer is named", func() bool {
		reason := w.one(id).Reason
		return reason != nil && strings.Contains(reason.Message, "its removal waits for RayCluster ") && strings.Contains(reason.Message, "/gang, which has finalizer example.com/stuck")
	})
	finalizers("null")
	if reason := w.reaches(id, workload.Cancelled).Reason; reason.Message != "cancelled on request: the test asks for it" {
		t.Errorf("it ended because %q", reason.Message)
	}
	w.nothingOf(id)
}
