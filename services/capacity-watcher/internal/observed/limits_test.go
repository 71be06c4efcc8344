package observed

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// TestNamespacesArePublishedWithTheirDefaults: those of all their LimitRanges, whichever is
// seen first, and only when they change.
func TestNamespacesArePublishedWithTheirDefaults(t *testing.T) {
	t.Parallel()
	p := New("c")
	limits := func(defaults resource.List) Limits {
		return Limits{Defaults: defaults, Range: &workload.LimitRange{}}
	}
	memory := func(amount int64) resource.List { return resource.List{"memory": amount} }
	of := func(defaults resource.List) []event.Payload {
		return []event.Payload{&event.NamespaceObserved{Cluster: "c", Namespace: "x", Defaults: defaults}}
	}
	for _, step := range []struct {
		name   string
		change func()
		want   []event.Payload
	}{
		{"before the namespace", func() { p.SetLimits("x", "a", limits(memory(1))) }, nil},
		{"the namespace", func() { p.ReplaceNamespaces(map[string]map[string]string{"x": nil}) }, of(memory(1))},
		{"the same", func() { p.SetLimits("x", "a", limits(memory(1))) }, nil},
		{"another LimitRange", func() { p.SetLimits("x", "b", limits(resource.List{"memory": 2, "cpu": 5})) }, of(resource.List{"memory": 2, "cpu": 5})},
		{"one that asks for less", func() { p.SetLimits("x", "c", limits(memory(1))) }, nil},
		{"it is gone", func() { p.RemoveLimits("x", "b"); p.RemoveLimits("x", "b") }, of(memory(1))},
		{"a list", func() {
			p.ReplaceLimits(map[string]map[string]Limits{"x": {"d": limits(memory(7))}, "y": {"e": limits(memory(8))}})
		}, of(memory(7))},
		{"an empty list", func() { p.ReplaceLimits(nil) }, of(nil)},
		{"after that", func() { p.SetLimits("x", "a", limits(memory(3))) }, of(memory(3))},
	} {
		t.Run(step.name, func(t *testing.T) {
			step.change()
			if diff := cmp.Diff(step.want, drain(p)); diff != "" {
				t.Fatalf("observations (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLimitRangesArePublished: by name, when one changes, and only when all of them are known:
// each may fill in what another one bounds.
func TestLimitRangesArePublished(t *testing.T) {
	t.Parallel()
	p := New("c")
	p.ReplaceNamespaces(map[string]map[string]string{"x": nil})
	drain(p)
	of := func(name string, cpu int64) workload.LimitRange {
		return workload.LimitRange{Name: name, Items: []workload.LimitItem{{Max: resource.List{"cpu": cpu}}}}
	}
	set := func(name string, r *workload.LimitRange) func() {
		return func() { p.SetLimits("x", name, Limits{Range: r}) }
	}
	one := func(name string, cpu int64) func() { r := of(name, cpu); return set(name, &r) }
	published := func(ranges ...workload.LimitRange) []event.Payload {
		return []event.Payload{&event.NamespaceObserved{Cluster: "c", Namespace: "x", Ranges: ranges}}
	}
	for _, step := range []struct {
		name   string
		change func()
		want   []event.Payload
	}{
		{"the first", one("b", 1), published(of("b", 1))},
		{"the same", one("b", 1), nil},
		{"one more", one("a", 2), published(of("a", 2), of("b", 1))},
		{"another bound", one("b", 3), published(of("a", 2), of("b", 3))},
		{"one for volumes alone", set("v", &workload.LimitRange{Name: "v"}), nil},
		{"one that is not known", set("u", nil), published()},
		{"it is gone", func() { p.RemoveLimits("x", "u") }, published(of("a", 2), of("b", 3))},
		{"too many", func() {
			all := map[string]Limits{}
			for i := range workload.MostRanges + 1 {
				r := of(string(rune('a'+i)), 1)
				all[r.Name] = Limits{Range: &r}
			}
			p.ReplaceLimits(map[string]map[string]Limits{"x": all})
		}, published()},
		{"fewer", func() { p.ReplaceLimits(nil); one("a", 2)() }, published(of("a", 2))},
		{"too many amounts", func() {
			r := workload.LimitRange{Name: "b"}
			for i := range workload.MostNamespaceAmounts {
				r.Items = append(r.Items, workload.LimitItem{Max: resource.List{"cpu": int64(i)}})
			}
			set("b", &r)()
		}, published()},
		{"a list", func() {
			r := of("a", 5)
			p.ReplaceLimits(map[string]map[string]Limits{"x": {"a": {Range: &r}}})
		}, published(of("a", 5))},
	} {
		t.Run(step.name, func(t *testing.T) {
			step.change()
			if diff := cmp.Diff(step.want, drain(p)); diff != "" {
				t.Fatalf("observations (-want +got):\n%s", diff)
			}
		})
	}
}
