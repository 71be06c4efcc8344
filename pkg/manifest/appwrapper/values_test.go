package appwrapper

import (
	"strings"
	"testing"

	"muster.dev/muster/pkg/manifest/ray"
)

// TestValuesAreBounded: a document of the API server is counted, too, before
// anything of it is decoded.
func TestValuesAreBounded(t *testing.T) {
	t.Parallel()
	groups := make([]any, 20_000)
	for i := range groups {
		groups[i] = map[string]any{}
	}
	cluster := map[string]any{"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{"workerGroupSpecs": groups}}
	_, err := Read(ray.Shipped(), map[string]any{
		"apiVersion": Group + "/" + V1beta2, "kind": Kind, "metadata": map[string]any{"name": "a", "namespace": "a"},
		"spec": map[string]any{"components": []any{map[string]any{"template": cluster}}},
	})
	if err == nil || !strings.Contains(err.Error(), "has more than 20000 values") {
		t.Errorf("an AppWrapper with 20,000 worker groups: %v", err)
	}
}
