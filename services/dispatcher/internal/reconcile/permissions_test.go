package reconcile

import (
	"encoding/json"
	"testing"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// TestIdentityOf: an object that a user created suspended is the user's; all others are
// of the user that the queue binds the submitter to.
func TestIdentityOf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		annotations map[string]string
		want        string
	}{
		"created by Muster":       {want: "bound"},
		"created suspended":       {annotations: map[string]string{kube.SuspendedUIDKey: "u", kube.IdentityKey: `{"user": "owner"}`}, want: "owner"},
		"no record of the user":   {annotations: map[string]string{kube.SuspendedUIDKey: "u"}, want: "bound"},
		"an unreadable record":    {annotations: map[string]string{kube.SuspendedUIDKey: "u", kube.IdentityKey: `{`}, want: "bound"},
		"an empty record":         {annotations: map[string]string{kube.SuspendedUIDKey: "u", kube.IdentityKey: `{}`}, want: "bound"},
		"a record, not suspended": {annotations: map[string]string{kube.IdentityKey: `{"user": "owner"}`}, want: "bound"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			manifest, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": c.annotations}})
			if err != nil {
				t.Fatal(err)
			}
			got := identityOf(&event.GangCommand{Manifest: manifest, Identity: &workload.Identity{User: "bound"}})
			if got.User != c.want {
				t.Errorf("the user is %q, want %q", got.User, c.want)
			}
		})
	}
}
