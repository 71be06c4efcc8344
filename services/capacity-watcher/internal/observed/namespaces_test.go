package observed

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/message/event"
)

func TestNamespacesArePublishedWithTheirLabels(t *testing.T) {
	t.Parallel()
	p := New("c")
	many := map[string]string{}
	for i := range event.NamespaceLabels + 1 {
		many[fmt.Sprint(i)] = "x"
	}
	of := func(name string, labels map[string]string) *event.NamespaceObserved {
		return &event.NamespaceObserved{Cluster: "c", Namespace: name, Labels: labels}
	}
	a, b := map[string]string{"team": "a"}, map[string]string{"team": "b"}
	for _, step := range []struct {
		name   string
		change func()
		want   []event.Payload
	}{
		{"what another watcher published, before the list", func() { p.Recall(Key{Namespace: "x"}, Key{Namespace: "old"}) }, nil},
		{"the list", func() { p.ReplaceNamespaces(map[string]map[string]string{"x": a, "y": nil}) },
			[]event.Payload{of("x", a), of("y", nil), &event.NamespaceObserved{Cluster: "c", Namespace: "old", Gone: true}}},
		{"the same", func() { p.SetNamespace("x", map[string]string{"team": "a"}) }, nil},
		{"another label", func() { p.SetNamespace("x", b) }, []event.Payload{of("x", b)}},
		{"too many labels", func() { p.SetNamespace("x", many) }, []event.Payload{&event.NamespaceObserved{Cluster: "c", Namespace: "x", Unread: len(many)}}},
		{"one is gone", func() { p.RemoveNamespace("y"); p.RemoveNamespace("y") }, []event.Payload{&event.NamespaceObserved{Cluster: "c", Namespace: "y", Gone: true}}},
		{"a list without the other", func() { p.ReplaceNamespaces(map[string]map[string]string{"z": nil}) },
			[]event.Payload{&event.NamespaceObserved{Cluster: "c", Namespace: "x", Gone: true}, of("z", nil)}},
		{"everything again", p.MarkAllChanged, []event.Payload{of("z", nil)}},
	} {
		t.Run(step.name, func(t *testing.T) {
			step.change()
			if diff := cmp.Diff(step.want, drain(p)); diff != "" {
				t.Fatalf("observations (-want +got):\n%s", diff)
			}
		})
	}
}
