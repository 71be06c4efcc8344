package cli

import (
	"testing"

	"muster.dev/muster/services/internal/client/manifest"
)

// TestTheLabelNamesTheQueue: the queue of a manifest is that of the flag; where that is not
// given, that of the label.
func TestTheLabelNamesTheQueue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		label string
		named bool
		want  string
	}{
		"a label":          {"research", false, "research"},
		"no label":         {"", false, "default"},
		"the flag":         {"research", true, "default"},
		"no queue's label": {"a.>", false, "default"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			document := manifest.Split([]byte("kind: RayJob\nmetadata: {name: a, labels: {muster.dev/queue-name: \"" + c.label + "\"}}\n"))[0]
			o := &submitOptions{queue: "default"}
			if got := o.queueOf(document, c.named); got != c.want {
				t.Errorf("the queue is %q, want %q", got, c.want)
			}
		})
	}
}
