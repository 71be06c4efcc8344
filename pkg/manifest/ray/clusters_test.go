package ray_test

import (
	"errors"
	"strings"
	"testing"

	"muster.dev/muster/pkg/manifest/ray"
)

// The annotations muster.dev/clusters and muster.dev/prefer-clusters are of all pod sets, in one
// form; one that is not a selector is refused with what is wanted.
func TestTheClustersOfAManifest(t *testing.T) {
	t.Parallel()
	manifest := func(selector, preferred string) []byte {
		return []byte(`{"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "a", "annotations": {"muster.dev/clusters": "` + selector + `", "muster.dev/prefer-clusters": "` + preferred + `"}},
			"spec": {"headGroupSpec": {"rayStartParams": {}, "template": {"spec": {"containers": [{"name": "ray", "image": "ray", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}]}}}}}`)
	}
	read, err := ray.Operator{}.Read(manifest("tier = spot, !shared", " data=b,region = eu"))
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range read.PodSets {
		if set.Clusters != "!shared,tier=spot" {
			t.Errorf("pod set %s selects %q", set.Name, set.Clusters)
		}
		if set.PreferClusters != "data=b,region=eu" {
			t.Errorf("pod set %s prefers %q", set.Name, set.PreferClusters)
		}
	}
	if len(read.PodSets) == 0 {
		t.Error("there is no pod set")
	}
	if len(read.Warnings) > 0 {
		t.Errorf("there are warnings: %q", read.Warnings)
	}
	for name, preferred := range map[string]string{"none": "region in (eu)", "too long": strings.Repeat("a=b,", 125) + "a=b"} {
		t.Run(name, func(t *testing.T) {
			if _, err := (ray.Operator{}).Read(manifest("", preferred)); !errors.Is(err, ray.ErrInvalid) || !strings.Contains(err.Error(), "muster.dev/prefer-clusters") {
				t.Errorf("a preference that is no selector: %v", err)
			}
		})
	}
	if _, err := (ray.Operator{}).Read(manifest("tier in (spot)", "")); !errors.Is(err, ray.ErrInvalid) || !strings.Contains(err.Error(), "want KEY=VALUE") {
		t.Errorf("a selector that is none: %v", err)
	}
}
