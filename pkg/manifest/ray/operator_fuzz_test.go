package ray_test

import (
	"encoding/json"
	"testing"

	"muster.dev/muster/pkg/manifest/ray"
)

// FuzzOperator: whatever is in a profile, it is one that can be stored, or an error.
func FuzzOperator(f *testing.F) {
	for _, seed := range []string{
		"version: v1.6.1\nfeatureGates: {RayCronJob: true}\nredisCleanup: false\n",
		"headSidecarContainers: [{name: a, image: i, resources: {requests: {memory: 1Gi}}}]\n",
		"workerSidecarContainers: [{name: a, image: i, resources: {requests: {memory: 1e99999999}}}]\n",
		"runtimeClasses: {nvidia: {}, gvisor: {memory: 100Mi, cpu: '-1'}}\n",
		"version: v1.6\nversion: v1.7\n", "&a [*a, *a]", "runtimeClasses: {\"\\0\": {}}", "null", "runtimeClasses:",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		profile, err := ray.ReadOperator(data)
		if err != nil {
			return
		}
		stored, err := json.Marshal(profile)
		if err != nil {
			t.Fatalf("a profile cannot be stored: %v", err)
		}
		if _, err := ray.ReadOperator(stored); err != nil {
			t.Fatalf("a stored profile is not read: %v\n%s", err, stored)
		}
	})
}
