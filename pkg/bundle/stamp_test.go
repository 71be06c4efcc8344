package bundle

import (
	"encoding/json"
	"testing"

	"muster.dev/muster/pkg/ray"
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
