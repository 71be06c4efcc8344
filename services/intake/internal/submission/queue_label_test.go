package submission

import (
	"strings"
	"testing"

	"muster.dev/muster/pkg/manifest/ray"
)

// TestTheQueueLabelMayNotContradict: a manifest whose label names another queue than the one
// that it is submitted to is refused, and keys like the label have a warning.
func TestTheQueueLabelMayNotContradict(t *testing.T) {
	t.Parallel()
	wrapper := strings.NewReplacer("\n", "\n    ").Replace("\n" + manifestYAML)
	wrapper = "apiVersion: workload.codeflare.dev/v1beta2\nkind: AppWrapper\nmetadata: {name: glue}\nspec:\n  components:\n  - template:" +
		strings.ReplaceAll(wrapper, "\n    ", "\n      ")
	for name, c := range map[string]struct{ label, refused, warns string }{
		"the queue":    {"muster.dev/queue-name: research", "", ""},
		"none":         {`muster.dev/queue-name: ""`, "", ""},
		"another":      {"muster.dev/queue-name: reserch", `metadata.labels[muster.dev/queue-name]: is "reserch", but the submission is to queue "research"`, ""},
		"Kueue's":      {"kueue.x-k8s.io/queue-name: other", "", ""},
		"a slip of it": {"muster.dev/queue: reserch", "", "did you mean muster.dev/queue-name"},
	} {
		for kind, manifest := range map[string]string{"RayCluster": manifestYAML, "AppWrapper": wrapper} {
			t.Run(kind+", "+name, func(t *testing.T) {
				t.Parallel()
				labelled := strings.Replace(manifest, "{name: glue}", "{name: glue, labels: {"+c.label+"}}", 1)
				m := binary(labelled, "content-type", "application/yaml")
				if c.refused == "" {
					got, _ := accepted(t, m)
					if warnings := strings.Join(got.Warnings, "\n"); (c.warns == "") != !strings.Contains(warnings, "muster.dev") || !strings.Contains(warnings, c.warns) {
						t.Errorf("it warns %q, want %q", warnings, c.warns)
					}
					return
				}
				result, err := Read(ray.Shipped(), m)
				if err != nil || result.Rejection == nil || !strings.Contains(result.Rejection.Message, c.refused) {
					t.Errorf("the result is %+v, %v; want the refusal %q", result.Rejection, err, c.refused)
				}
			})
		}
	}
}
