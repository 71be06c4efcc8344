package bundle_test

import (
	"encoding/json"
	"maps"
	"testing"

	"muster.dev/muster/pkg/manifest/bundle"
)

// TestRemainingIsWhatKueueDoesNotReclaim: the cases are those of Kueue's rule for Jobs: parallelism
// less what is left of the completions is given back, once a pod has succeeded. Values that are no
// numbers of pods give nothing back.
func TestRemainingIsWhatKueueDoesNotReclaim(t *testing.T) {
	t.Parallel()
	job := func(spec, status string) [2]string {
		submitted := `{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": ` + spec + `}`
		return [2]string{submitted, submitted[:len(submitted)-1] + `, "status": ` + status + `}`}
	}
	pod := func(phase string) [2]string {
		return [2]string{`{"apiVersion": "v1", "kind": "Pod"}`, `{"apiVersion": "v1", "kind": "Pod", "status": {"phase": "` + phase + `"}}`}
	}
	scaled := job(`{"parallelism": 2, "completions": 9}`, `{"succeeded": 4}`)
	scaled[1] = `{"apiVersion": "batch/v1", "kind": "Job", "spec": {"parallelism": 9, "completions": 9}, "status": {"succeeded": 4}}`
	for name, c := range map[string]struct {
		object [2]string // as submitted and as the API server has it
		want   map[string]int
	}{
		"none has succeeded":                   {job(`{"parallelism": 4, "completions": 4}`, `{}`), nil},
		"one of four":                          {job(`{"parallelism": 4, "completions": 4}`, `{"succeeded": 1, "active": 3}`), map[string]int{"s": 3}},
		"without completions":                  {job(`{"parallelism": 4}`, `{"succeeded": 3}`), map[string]int{"s": 1}},
		"others take the places":               {job(`{"parallelism": 4, "completions": 9}`, `{"succeeded": 5}`), nil},
		"the last ones":                        {job(`{"parallelism": 4, "completions": 9}`, `{"succeeded": 6}`), map[string]int{"s": 3}},
		"all":                                  {job(`{"parallelism": 4, "completions": 4}`, `{"succeeded": 4}`), map[string]int{"s": 0}},
		"a pod that failed is replaced":        {job(`{"parallelism": 4, "completions": 4}`, `{"succeeded": 1, "failed": 2}`), map[string]int{"s": 3}},
		"more than there were to be":           {job(`{"parallelism": 2, "completions": 2}`, `{"succeeded": 7}`), map[string]int{"s": 0}},
		"no number":                            {job(`{"parallelism": 4}`, `{"succeeded": "3"}`), nil},
		"less than nothing":                    {job(`{"parallelism": 4}`, `{"succeeded": -3}`), nil},
		"beyond any number":                    {job(`{"parallelism": 4}`, `{"succeeded": 1e300}`), nil},
		"one pod":                              {job(`{}`, `{"succeeded": 1}`), map[string]int{"s": 0}},
		"fewer completions than parallelism":   {job(`{"parallelism": 4, "completions": 2}`, `{"succeeded": 1}`), map[string]int{"s": 1}},
		"scaled up beyond what was submitted":  {scaled, nil},
		"a Pod that runs":                      {pod("Running"), nil},
		"a Pod that has failed":                {pod("Failed"), nil},
		"a Pod that has succeeded":             {pod("Succeeded"), map[string]int{"s": 0}},
		"a kind that replaces its pods itself": {[2]string{`{}`, `{"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 3}, "status": {"succeeded": 2}}`}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var object map[string]any
			if err := json.Unmarshal([]byte(c.object[1]), &object); err != nil {
				t.Fatal(err)
			}
			item := bundle.Item{Object: json.RawMessage(c.object[0]), Templates: []bundle.Template{{PodSet: "s"}}}
			if got := item.Remaining(object); !maps.Equal(got, c.want) || (got == nil) != (c.want == nil) {
				t.Errorf("remaining are %v, want %v", got, c.want)
			}
		})
	}
}
