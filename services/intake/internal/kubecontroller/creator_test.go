package kubecontroller

import (
	"context"
	"strings"
	"testing"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/manifest/appwrapper"
)

// enforcing is a cluster that has the admission policy that writes the user on an object,
// or has not.
type enforcing struct {
	Cluster
	inForce bool
}

func (e enforcing) Stamps(context.Context, string) (bool, error) { return e.inForce, nil }

// TestAUserOnAnObjectCountsWhereThePolicyIsInForce: without the policy a tenant can write any
// name on its object. Then no user counts, and an AppWrapper is refused.
func TestAUserOnAnObjectCountsWhereThePolicyIsInForce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		annotations map[string]any
		inForce     bool
		want        string
	}{
		"in force":           {map[string]any{userKey: "alice"}, true, "kubernetes/c/alice"},
		"not in force":       {map[string]any{userKey: "alice"}, false, "kubernetes/c"},
		"nothing is written": {nil, true, "kubernetes/c"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := New(Options{Cluster: "c", Logger: zap.NewNop()}, nil)
			defer d.queue.ShutDown()
			d.SetCluster(enforcing{inForce: c.inForce})
			object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"annotations": c.annotations}}}
			user, err := d.creator(t.Context(), object, stampsWrappers)
			if err != nil {
				t.Fatal(err)
			}
			if got := d.submitterName(user); got != c.want {
				t.Errorf("the submitter is %s, want %s", got, c.want)
			}
			refused, err := d.refusal(t.Context(), object, appwrapper.Wrapper{}, "default", user)
			if err != nil {
				t.Fatal(err)
			}
			if unknown := refused != nil && strings.Contains(refused.Message, "its creator is unknown"); unknown != (user == nil) {
				t.Errorf("the AppWrapper is refused because %+v; its user is %+v", refused, user)
			}
		})
	}
}
