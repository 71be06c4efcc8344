package ray_test

import (
	"errors"
	"strings"
	"testing"

	"muster.dev/muster/pkg/manifest/ray"
)

// The annotation muster.dev/clusters is of all pod sets, in one form; one that is not a
// selector is refused with what is wanted.
func TestTheClustersOfAManifest(t *testing.T) {
	t.Parallel()
	manifest := func(selector string) []byte {
		return []byte(`{"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "a", "annotations": {"muster.dev/clusters": "` + selector + `"}},
			"spec": {"headGroupSpec": {"rayStartParams": {}, "template": {"spec": {"containers": [{"name": "ray", "image": "ray", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}]}}}}}`)
	}
	read, err := ray.Operator{}.Read(manifest("tier = spot, !shared"))
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range read.PodSets {
		if set.Clusters != "!shared,tier=spot" {
			t.Errorf("pod set %s selects %q", set.Name, set.Clusters)
		}
	}
	if len(read.PodSets) == 0 {
		t.Error("there is no pod set")
	}
	if _, err := (ray.Operator{}).Read(manifest("tier in (spot)")); !errors.Is(err, ray.ErrInvalid) || !strings.Contains(err.Error(), "want KEY=VALUE") {
		t.Errorf("a selector that is none: %v", err)
	}
}
