package examples_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"muster.dev/muster/pkg/ray"
	"muster.dev/muster/services/muster/examples"
	queuemanager "muster.dev/muster/services/queue-manager/app"
)

// TestManifests: what Muster is shown with must be acceptable to it.
func TestManifests(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	manifests := map[string]int{examples.Glue: 2, examples.TwoGPUsOnOneNode: 2, examples.HelloJob: 3} // pods
	if len(files) != len(manifests)+1 {
		t.Errorf("there are %q; want each of them in this test", files)
	}
	for name, pods := range manifests {
		content, err := examples.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		object, err := ray.Read(content)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		total := 0
		for _, set := range object.PodSets {
			total += set.Count
		}
		if total != pods {
			t.Errorf("%s: %d pods, want %d", name, total, pods)
		}
	}
}

func TestQueues(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(examples.Queues); err != nil {
		t.Fatal(err)
	}
	queues, _, err := queuemanager.ReadQueues(examples.Queues)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(queues, func(q queuemanager.Queue) bool { return q.Name == "default" }) {
		t.Errorf("the queues %+v lack the default one", queues)
	}
}
