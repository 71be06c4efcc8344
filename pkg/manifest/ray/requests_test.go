package ray_test

import (
	"strings"
	"testing"

	"muster.dev/muster/pkg/manifest/ray"
)

// Pods that ask for nothing are accepted with a warning, because they get places on nodes
// that are full.
func TestPodsWithoutRequestsAreWarnedOf(t *testing.T) {
	t.Parallel()
	const manifest = `{"apiVersion":"ray.io/v1","kind":"RayCluster","metadata":{"name":"a"},"spec":{
		"headGroupSpec":{"rayStartParams":{},"template":{"spec":{"containers":[{"name":"h","image":"i","resources":{"limits":{"cpu":"1"}}}]}}},
		"workerGroupSpecs":[{"groupName":"w","replicas":1,"minReplicas":1,"maxReplicas":1,"rayStartParams":{},"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}}]}}`
	object, err := ray.Shipped().Read([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	if len(object.Warnings) != 1 || !strings.HasPrefix(object.Warnings[0], "spec.workerGroupSpecs[0].template.spec: no container has requests or limits") {
		t.Errorf("the warnings are %q", object.Warnings)
	}
}
