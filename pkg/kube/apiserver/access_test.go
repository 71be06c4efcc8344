package apiserver

import (
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
)

// TestAction: the error of a review that failed names the verb, the resource as kubectl
// does, the object and the namespace.
func TestAction(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		object *authorizationv1.ResourceAttributes
		path   *authorizationv1.NonResourceAttributes
		want   string
	}{
		"an object": {
			object: &authorizationv1.ResourceAttributes{Verb: "create", Group: "ray.io", Version: "v1", Resource: "rayjobs", Namespace: "a", Name: "train"},
			want:   `create rayjobs.ray.io "train" in namespace a`,
		},
		"a subresource of the core group": {
			object: &authorizationv1.ResourceAttributes{Verb: "update", Version: "v1", Resource: "pods", Subresource: "ephemeralcontainers", Namespace: "a"},
			want:   "update pods/ephemeralcontainers in namespace a",
		},
		"an object without a namespace": {
			object: &authorizationv1.ResourceAttributes{Verb: "list", Version: "v1", Resource: "nodes"},
			want:   "list nodes",
		},
		"a path": {
			path: &authorizationv1.NonResourceAttributes{Verb: "get", Path: "/metrics"},
			want: "get /metrics",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := action(c.object, c.path); got != c.want {
				t.Errorf("action is %q, want %q", got, c.want)
			}
		})
	}
}
