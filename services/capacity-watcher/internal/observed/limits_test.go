package observed

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/resource"
)

// TestNamespacesArePublishedWithTheirDefaults: those of all their LimitRanges, whichever is
// seen first, and only when they change.
func TestNamespacesArePublishedWithTheirDefaults(t *testing.T) {
	t.Parallel()
	p := New("c")
	memory := func(amount int64) resource.List { return resource.List{"memory": amount} }
	of := func(defaults resource.List) []event.Payload {
		return []event.Payload{&event.NamespaceObserved{Cluster: "c", Namespace: "x", Defaults: defaults}}
	}
	for _, step := range []struct {
		name   string
		change func()
		want   []event.Payload
	}{
		{"before the namespace", func() { p.SetLimits("x", "a", memory(1)) }, nil},
		{"the namespace", func() { p.ReplaceNamespaces(map[string]map[string]string{"x": nil}) }, of(memory(1))},
		{"the same", func() { p.SetLimits("x", "a", memory(1)) }, nil},
		{"another LimitRange", func() { p.SetLimits("x", "b", resource.List{"memory": 2, "cpu": 5}) }, of(resource.List{"memory": 2, "cpu": 5})},
		{"one that asks for less", func() { p.SetLimits("x", "c", memory(1)) }, nil},
		{"it is gone", func() { p.RemoveLimits("x", "b"); p.RemoveLimits("x", "b") }, of(memory(1))},
		{"a list", func() {
			p.ReplaceLimits(map[string]map[string]resource.List{"x": {"d": memory(7)}, "y": {"e": memory(8)}})
		}, of(memory(7))},
		{"an empty list", func() { p.ReplaceLimits(nil) }, of(nil)},
		{"after that", func() { p.SetLimits("x", "a", memory(3)) }, of(memory(3))},
	} {
		t.Run(step.name, func(t *testing.T) {
			step.change()
			if diff := cmp.Diff(step.want, drain(p)); diff != "" {
				t.Fatalf("observations (-want +got):\n%s", diff)
			}
		})
	}
}
