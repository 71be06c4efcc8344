package trial_test

import (
	"strings"
	"testing"
	"time"

	"muster.dev/muster/services/internal/client/trial"
)

const cluster = `apiVersion: ray.io/v1
kind: RayCluster
metadata:
  name: train
  labels: {LABELS}
spec:
  headGroupSpec:
    rayStartParams: {}
    template:
      spec:
        containers: [{name: ray, image: ray, resources: {requests: {cpu: 2}, limits: {cpu: 2}}}]
`

// TestRead: a manifest has the queue, class and run time that it names, or else those given.
func TestRead(t *testing.T) {
	t.Parallel()
	labelled := func(labels string) string { return strings.ReplaceAll(cluster, "LABELS", labels) }
	for name, c := range map[string]struct {
		content                 string
		options                 trial.Options
		queue, namespace, class string
		refused                 string
	}{
		"with what is given":    {labelled(""), trial.Options{Queue: "q", Namespace: "n", Submitter: "http/ann", RunTime: time.Hour}, "q", "n", "", ""},
		"with its own queue":    {labelled("muster.dev/queue-name: own"), trial.Options{}, "own", "", "", ""},
		"with a class":          {labelled("muster.dev/priority-class: high"), trial.Options{Queue: "q"}, "q", "", "high", ""},
		"with a class of Kueue": {labelled("kueue.x-k8s.io/priority-class: low"), trial.Options{Queue: "q"}, "q", "", "low", ""},
		"without a queue":       {labelled(""), trial.Options{}, "", "", "", "to which queue?"},
		"with two queues":       {labelled("muster.dev/queue-name: own"), trial.Options{Queue: "q"}, "", "", "", `is "own", but it would be submitted to queue "q"`},
		"another kind":          {"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n", trial.Options{Queue: "q"}, "", "", "", "Pod"},
		"no YAML":               {"a: [", trial.Options{Queue: "q"}, "", "", "", "manifest"},
		"nothing":               {"# nothing\n", trial.Options{Queue: "q"}, "", "", "", "no manifest"},
		"too many":              {strings.Repeat("---\na: b\n", 101), trial.Options{Queue: "q"}, "", "", "", "101 manifests: want at most 100"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, err := trial.Read([]byte(c.content), c.options)
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("got %+v, %v; want the error %q", all, err, c.refused)
				}
				return
			}
			if err != nil || len(all) != 1 {
				t.Fatalf("got %+v, %v; want one workload", all, err)
			}
			got := all[0]
			if got.Queue != c.queue || got.Namespace != c.namespace || got.PriorityClass != c.class || got.Submitter != c.options.Submitter || time.Duration(got.Life.RunTime) != c.options.RunTime || got.Pods() != 1 || got.Name != "train" {
				t.Errorf("got %+v", got)
			}
		})
	}
}
