package kube_test

import (
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/pkg/kube"
)

// TestMistakenKeys: a key of Muster's that does nothing is named, with the one that is meant.
func TestMistakenKeys(t *testing.T) {
	t.Parallel()
	const unknown = ": does nothing, because Muster has no such key"
	for name, c := range map[string]struct{ field, key, want string }{
		"a known label":         {"labels", "muster.dev/queue-name", ""},
		"a known annotation":    {"annotations", "muster.dev/run-time", ""},
		"another's":             {"labels", "example.org/queue", ""},
		"Muster's own":          {"annotations", "muster.dev/epoch", ""},
		"a part":                {"labels", "muster.dev/queue", "metadata.labels[muster.dev/queue]" + unknown + "; did you mean muster.dev/queue-name in metadata.labels?"},
		"without its dash":      {"labels", "muster.dev/queuename", "metadata.labels[muster.dev/queuename]" + unknown + "; did you mean muster.dev/queue-name in metadata.labels?"},
		"a slip":                {"labels", "muster.dev/priorty-class", "metadata.labels[muster.dev/priorty-class]" + unknown + "; did you mean muster.dev/priority-class in metadata.labels?"},
		"an annotation's":       {"annotations", "muster.dev/runtime", "metadata.annotations[muster.dev/runtime]" + unknown + "; did you mean muster.dev/run-time in metadata.annotations?"},
		"capitals":              {"labels", "Muster.dev/queue-name", "metadata.labels[Muster.dev/queue-name]" + unknown + "; did you mean muster.dev/queue-name in metadata.labels?"},
		"in the wrong field":    {"labels", "muster.dev/run-time", "metadata.labels[muster.dev/run-time]: does nothing here; put it in metadata.annotations"},
		"a label as annotation": {"annotations", "muster.dev/queue-name", "metadata.annotations[muster.dev/queue-name]: does nothing here; put it in metadata.labels"},
		"like nothing":          {"labels", "muster.dev/team", "metadata.labels[muster.dev/team]" + unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var want []string
			if c.want != "" {
				want = []string{c.want}
			}
			tree := map[string]any{"metadata": map[string]any{c.field: map[string]any{c.key: "x"}}}
			if got := kube.MistakenKeys(tree); !slices.Equal(got, want) {
				t.Errorf("it warns\n%q, want\n%q", got, want)
			}
		})
	}
}

// TestMistakenKeysOfAnExportedObject: what Muster wrote on an object is no mistake, and many
// mistakes are bounded.
func TestMistakenKeysOfAnExportedObject(t *testing.T) {
	t.Parallel()
	exported := map[string]any{"muster.dev/workload": "id", "muster.dev/queue": "q", "muster.dev/attempt": "1", "muster.dev/cluster": "c"}
	if got := kube.MistakenKeys(map[string]any{"metadata": map[string]any{"labels": exported}}); len(got) > 0 {
		t.Errorf("of an exported object it warns %q", got)
	}
	many := map[string]any{}
	for i := range 100 {
		many["muster.dev/x"+strings.Repeat("y", i)] = "z"
	}
	if got := kube.MistakenKeys(map[string]any{"metadata": map[string]any{"labels": many}}); len(got) != 9 {
		t.Errorf("of 100 mistakes it names %d: %q", len(got), got)
	}
}
