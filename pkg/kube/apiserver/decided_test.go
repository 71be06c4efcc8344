package apiserver

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestWhatIsDecided: an installation, and the dispatcher, wait for an API server that does not
// answer, and for answers that pass.
func TestWhatIsDecided(t *testing.T) {
	t.Parallel()
	resource := schema.GroupResource{Group: "ray.io", Resource: "rayclusters"}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"created":                       {nil, true},
		"invalid":                       {apierrors.NewInvalid(schema.GroupKind{Kind: "RayCluster"}, "probe", nil), true},
		"refused by a policy":           {apierrors.NewForbidden(resource, "probe", errors.New("no head")), true},
		"without namespace":             {apierrors.NewNotFound(resource, "probe"), true},
		"a webhook does not answer yet": {apierrors.NewInternalError(errors.New("failed calling webhook")), true},
		"types are not known yet":       {apierrors.NewServiceUnavailable("not yet"), false},
		"too many requests":             {apierrors.NewTooManyRequestsError("later"), false},
		"it took too long":              {apierrors.NewTimeoutError("slow", 1), false},
		"no connection":                 {errors.New("connection refused"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Decided(c.err); got != c.want {
				t.Errorf("decided: %t, want %t", got, c.want)
			}
		})
	}
}
