package kubernetes

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/manifest/bundle"
)

// FuzzSeen: whatever tenants write on their objects and pods, they are read, and what
// the caches keep of them reads the same.
func FuzzSeen(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"ray.io/v1","kind":"RayCluster","metadata":{"name":"a","labels":{"muster.dev/attempt":"99999999999999999999","muster.dev/workload":"w"},"annotations":{"muster.dev/epoch":"-1","muster.dev/last-used":"x"},"ownerReferences":[{"controller":true,"kind":"RayJob","uid":"u"}]},"spec":{"enableInTreeAutoscaling":true,"workerGroupSpecs":[{"groupName":"g","replicas":2147483647,"numOfHosts":2147483647},{"replicas":-1},1,null]},"status":{"conditions":[{"type":"ReplicaFailure","status":"True","message":"a\nb"},7]}}`))
	f.Add([]byte(`{"apiVersion":"ray.io/v1","kind":"RayJob","metadata":{"labels":[],"annotations":"x"},"spec":[],"status":{"jobDeploymentStatus":"Failed","jobStatus":3,"rayClusterStatus":{"conditions":[[]]}}}`))
	f.Add([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","labels":{"muster.dev/attempt":"1"},"annotations":{"muster.dev/last-checkpoint":"2026-01-02T03:04:05Z","x":"y"},"deletionTimestamp":"2026-01-02T03:04:05Z","ownerReferences":[{"controller":true}]},"spec":{"schedulingGates":[{"name":"muster.dev/placement"},{"name":"x"}],"nodeSelector":{"kubernetes.io/hostname":"n"}},"status":{"phase":"Failed"}}`))
	f.Add([]byte(`{"until":"2026-01-02T03:04:05Z","for":"-1s","stopping":1}`))
	c := &Client{cluster: "c"}
	f.Fuzz(func(t *testing.T, data []byte) {
		if r := recordOf(string(data)); r.Text != string(data) || r.For < 0 {
			t.Fatalf("the permission %q is read as %+v", data, r)
		}
		object := &unstructured.Unstructured{}
		if object.UnmarshalJSON(data) == nil {
			for kind := range resources {
				seen, whole := objectOf(kind, object), object.DeepCopy()
				kept, err := trimObject(whole)
				if err != nil {
					t.Fatal(err)
				}
				for group, size := range seen.Sizes {
					if again := objectOf(kind, kept.(*unstructured.Unstructured)); again.Sizes[group] != size || again.Keeps[group] != seen.Keeps[group] {
						t.Fatalf("%s: of %q %d and %d, from the cache %+v", kind, group, size, seen.Keeps[group], again)
					}
				}
			}
			c.wrappedOf(bundle.Identity{APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Name: object.GetName()}, object)
		}
		pod := &corev1.Pod{}
		if json.Unmarshal(data, pod) != nil {
			return // no API server keeps it
		}
		for name, trim := range map[string]func(any) (any, error){"a member": trimPod, "another": trimOther} {
			kept, err := trim(pod)
			if err != nil {
				t.Fatal(err)
			}
			if want, got := podOf(pod), seen(kept); got.UID != want.UID || got.Controller != want.Controller || got.Gated != want.Gated || got.Deleting != want.Deleting || !got.LastCheckpoint.Equal(want.LastCheckpoint) {
				t.Fatalf("%s: pod %+v, from the cache %+v", name, want, got)
			}
		}
	})
}
