package submission

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
)

// list is a batch of CloudEvents.
func list(t *testing.T, events ...map[string]json.RawMessage) Message {
	t.Helper()
	data, err := json.Marshal(events)
	if err != nil {
		t.Fatal(err)
	}
	return message(data, nil)
}

// TestABatchIsItsEvents: each event of a batch is accepted or rejected alone, and its
// result has a unique id, the same each time.
func TestABatchIsItsEvents(t *testing.T) {
	t.Parallel()
	m := list(t, attributes("id", `"1"`, "data", manifestJSON), attributes("id", `"2"`, "data", `{"kind": "Nothing"}`),
		attributes("id", `"3"`, "data", `{"kind": "Nothing"}`), attributes("id", `"4"`, "data", manifestJSON))
	m.Data = append([]byte("\n "), m.Data...)
	var results [2][]string
	for time := range results {
		for i, one := range Split(m) {
			result, err := Read(ray.Shipped(), one)
			if err != nil {
				t.Fatal(err)
			}
			if want := event.WorkloadID("test", fmt.Sprint(i+1)); result.Workload != want {
				t.Errorf("event %d is workload %s, want %s", i, result.Workload, want)
			}
			if refused := i == 1 || i == 2; (result.Rejection != nil) != refused {
				t.Errorf("event %d: rejection %v", i, result.Rejection)
			}
			results[time] = append(results[time], result.Event.ID)
		}
	}
	ids := map[string]bool{}
	for i, id := range results[0] {
		ids[id] = true
		if id != results[1][i] {
			t.Errorf("the result of event %d has id %s, then %s", i, id, results[1][i])
		}
	}
	if len(ids) != 4 {
		t.Errorf("the ids are %v", results[0])
	}
}

// TestWarningsAreBounded: fields without effect give warnings, for Ray objects and for
// AppWrappers, within bounds.
func TestWarningsAreBounded(t *testing.T) {
	t.Parallel()
	params := strings.Replace(manifestYAML, "headGroupSpec:", "headGroupSpec:\n    rayStartParams: {num-gpus: \"2\"}", 1)
	submitted, _ := accepted(t, structured(t, "data", quoted(params)))
	if len(submitted.Warnings) != 1 || !strings.Contains(submitted.Warnings[0], "num-gpus") {
		t.Errorf("of a RayCluster: %q", submitted.Warnings)
	}
	var nothing []string
	for i := range 2 * maxWarnings {
		nothing = append(nothing, fmt.Sprintf(`"workload.codeflare.dev.appwrapper/%02d%s": "x"`, i, strings.Repeat("y", 60)))
	}
	wrapper := `{"apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper", "metadata": {"name": "w", "annotations": {` + strings.Join(nothing, ",") +
		`}}, "spec": {"components": [{"template": ` + manifestJSON + `}]}}`
	submitted, _ = accepted(t, structured(t, "data", wrapper))
	if n := len(submitted.Warnings); n != maxWarnings+1 || submitted.Warnings[n-1] != "and 20 more warnings" {
		t.Errorf("of an AppWrapper: %d, the last %q", n, submitted.Warnings[max(0, n-1)])
	}
	if long := boundWarnings([]string{strings.Repeat("y", 2*maxWarningBytes)}); len(long[0]) > maxWarningBytes+3 {
		t.Errorf("a warning of %d bytes", len(long[0]))
	}
}

// TestWarnsOfAnnotationsThatNeedAnObject: annotations that need an AppWrapper object give a warning
// in a message; for pod sets it names the submitted field.
func TestWarnsOfAnnotationsThatNeedAnObject(t *testing.T) {
	t.Parallel()
	metadata := func(ttl string) string {
		return `"metadata": {"name": "w", "annotations": {"workload.codeflare.dev.appwrapper/successTTLDuration": "` + ttl + `"}}`
	}
	wrapper := `{"apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper", %s, "spec": {"components": [{"template": ` + manifestJSON + `}]}}`
	sets := `{"apiVersion": "muster.dev/v1", "kind": "PodSets", %s, "spec": {"podSets": [{"name": "a", "count": 1, "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}}}],
		"objects": [{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}}]}}`
	for name, document := range map[string]string{"AppWrapper": wrapper, "PodSets": sets} {
		t.Run(name, func(t *testing.T) {
			submitted, _ := accepted(t, structured(t, "data", fmt.Sprintf(document, metadata("1h"))))
			all := strings.Join(submitted.Warnings, "\n")
			for _, part := range []string{
				"metadata.annotations[workload.codeflare.dev.appwrapper/successTTLDuration]: is 1h0m0s and does nothing", "as a message", "kubectl", "ttlSecondsAfterFinished",
			} {
				if !strings.Contains(all, part) {
					t.Errorf("the warnings for the %s lack %q:\n%s", name, part, all)
				}
			}
			if strings.Contains(all, "components") || name == "PodSets" && !strings.Contains(all, "spec.objects[0]: Muster does not know") {
				t.Errorf("the warnings for the %s are:\n%s", name, all)
			}
			submitted, _ = accepted(t, structured(t, "data", fmt.Sprintf(document, `"metadata": {"name": "w"}`)))
			if warnings := strings.Join(submitted.Warnings, "\n"); strings.Contains(warnings, "TTL") {
				t.Errorf("the warnings for a %s without it are:\n%s", name, warnings)
			}
		})
	}
}

func TestBatchesThatAreRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	for want, data := range map[string][]byte{
		"has 0 events; want 1 to 256":    []byte("[]"),
		"has 257 events; want 1 to 256":  []byte("[" + strings.Repeat("{},", 256) + "{}]"),
		"not a batch of CloudEvents":     []byte(`[{"a"]`),
		"bytes; at most 524288 are acce": []byte("[" + strings.Repeat(" ", event.MaxSubmission) + "]"),
	} {
		t.Run(want, func(t *testing.T) {
			submissions := Split(message(data, nil))
			if len(submissions) != 1 {
				t.Fatalf("%s: %d submissions", want, len(submissions))
			}
			result, err := Read(ray.Shipped(), submissions[0])
			if err != nil || result.Rejection == nil || !strings.Contains(result.Rejection.Message, want) {
				t.Errorf("it is %+v, %v; want a rejection with %q", result.Rejection, err, want)
			}
		})
	}
	if in := Split(binary("[1]")); len(in) != 1 || !bytes.Equal(in[0].Data, []byte("[1]")) {
		t.Error("a message in binary mode is taken apart")
	}
}
