package kubernetes

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/workload"
)

// TestARefusalReadsTheSame: each try of KubeRay to create a pod has another name, which is
// no other reason.
func TestARefusalReadsTheSame(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ message, want string }{
		"a quota": {
			`FailedCreateWorkerPod: pods "train-small-worker-x7k2p" is forbidden: exceeded quota: team, requested: pods=1, used: pods=3, limited: pods=3`,
			`FailedCreateWorkerPod: pods "train-small-worker-*" is forbidden: exceeded quota: team, requested: pods=1, used: pods=3, limited: pods=3`,
		},
		"an invalid pod":      {`Pod "train-head-bcdfg" is invalid: spec.x: wrong`, `Pod "train-head-*" is invalid: spec.x: wrong`},
		"a name without kind": {"create n/train-head-22222: timeout\nagain", "create n/train-head-*: timeout: again"},
		"a name that was cut": {`pods "a-very-long-nam-zzzzz" is forbidden`, `pods "a-very-long-nam-*" is forbidden`},
		"no random name":      {`serviceaccounts "my-head-waiter" not found`, `serviceaccounts "my-head-waiter" not found`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := objectOf(workload.KindRayCluster, &unstructured.Unstructured{Object: map[string]any{
				"status": map[string]any{"conditions": []any{map[string]any{"type": "ReplicaFailure", "status": "True", "message": c.message}}},
			}})
			if object.Message != c.want {
				t.Errorf("the failure reads %q, want %q", object.Message, c.want)
			}
		})
	}
}

// TestWhatIsInThePlaceOfAnother: what Muster has created says so; of an object that a user has
// created and Muster has released it means nothing.
func TestWhatIsInThePlaceOfAnother(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		annotations map[string]any
		want        bool
	}{
		"a copy":            {map[string]any{kube.HomeKey: "east/r"}, true},
		"an object":         {map[string]any{}, false},
		"a released object": {map[string]any{kube.HomeKey: "east/r", kube.SuspendedUIDKey: "u"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := objectOf(workload.KindRayCluster, &unstructured.Unstructured{Object: map[string]any{
				"metadata": map[string]any{"uid": "u", "annotations": c.annotations}, "status": map[string]any{"state": "ready"},
			}})
			if object.Home != c.want || (object.Status != nil) != c.want {
				t.Errorf("in the place of another: %t, with the status %s; want %t", object.Home, object.Status, c.want)
			}
		})
	}
}
