package bundle

import (
	"encoding/json"
	"testing"

	"muster.dev/muster/pkg/manifest/ray"
)

// Whatever came of an object of the cluster names it as its owner, so that it goes
// with it; and not as its controller, which would have KubeRay and Kubernetes look
// after it.
func TestItemsGoWithTheirOwner(t *testing.T) {
	t.Parallel()
	const cluster = `{"apiVersion":"ray.io/v1","kind":"RayCluster","metadata":{"name":"a"},"spec":{"headGroupSpec":{"template":{"spec":{"containers":[{"name":"r","image":"r"}]}}}}}`
	for _, object := range []string{`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`, cluster} {
		for _, owner := range []*Owner{nil, {"workload.codeflare.dev/v1beta2", "AppWrapper", "wraps", "u"}} {
			stamped, err := Bundle{Owner: owner}.Stamp(Item{Object: json.RawMessage(object)}, ray.StampInput{Namespace: "n", Workload: "w", Attempt: 1})
			if err != nil {
				t.Fatal(err)
			}
			var read struct {
				Metadata struct {
					OwnerReferences []struct {
						Owner
						Controller *bool
					}
				}
			}
			if err := json.Unmarshal(stamped, &read); err != nil {
				t.Fatal(err)
			}
			owners := read.Metadata.OwnerReferences
			if owner == nil && len(owners) != 0 || owner != nil && (len(owners) != 1 || owners[0].Owner != *owner || owners[0].Controller != nil) {
				t.Errorf("of owner %+v the object has %+v", owner, owners)
			}
		}
	}
}

// A Ray object is created in one version, and asked for in the same, whichever it
// was written in.
func TestRayObjectsOfOldVersions(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"ray.io/v1alpha1", "ray.io/v1"} {
		t.Run(version, func(t *testing.T) {
			item := Item{Object: json.RawMessage(`{"apiVersion":"` + version + `","kind":"RayCluster","metadata":{"name":"a"},"spec":{"headGroupSpec":{"template":{"spec":{"containers":[{"name":"r","image":"r"}]}}}}}`)}
			stamped, err := Bundle{}.Stamp(item, ray.StampInput{Namespace: "n", Workload: "w", Attempt: 1})
			if err != nil {
				t.Fatal(err)
			}
			asked, err := item.Identity()
			if err != nil {
				t.Fatal(err)
			}
			created, err := Item{Object: stamped}.Identity()
			var head struct{ APIVersion string }
			if err != nil || json.Unmarshal(stamped, &head) != nil {
				t.Fatal(err, string(stamped))
			}
			if asked.APIVersion != head.APIVersion || asked.APIVersion != ray.GroupVersion || created.APIVersion != ray.GroupVersion {
				t.Errorf("asked for as %s, created as %s", asked.APIVersion, head.APIVersion)
			}
		})
	}
}
