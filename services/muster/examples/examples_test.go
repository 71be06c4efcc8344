package examples_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/policyfile/queuesfile"
	"muster.dev/muster/services/muster/examples"
)

// TestManifests: what Muster is shown with must be acceptable to it.
func TestManifests(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	manifests := map[string]int{examples.Glue: 2, examples.TwoGPUsOnOneNode: 2, examples.HelloJob: 3, examples.TextClassifier: 2} // pods
	if len(files) != len(manifests)+2 {
		t.Errorf("there are %q; want each of them in this test", files)
	}
	for name, pods := range manifests {
		t.Run(name, func(t *testing.T) {
			content, err := examples.Read(name)
			if err != nil {
				t.Fatal(err)
			}
			object, err := ray.Read(content)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			total := 0
			for _, set := range object.PodSets {
				total += set.Count
			}
			if total != pods {
				t.Errorf("%s: %d pods, want %d", name, total, pods)
			}
		})
	}
}

// Kueue's manifests are a queues file, too.
func TestKueueResources(t *testing.T) {
	t.Parallel()
	file, _ := readQueues(t, examples.KueueResources)
	if len(file.Queues) != 1 || file.Queues[0].Name != "user-queue" || len(file.ClusterQueues) != 1 {
		t.Errorf("read %+v", file)
	}
}

func TestQueues(t *testing.T) {
	t.Parallel()
	file, notes := readQueues(t, examples.Queues)
	if !slices.ContainsFunc(file.Queues, func(q queuesfile.Queue) bool { return q.Name == "default" }) {
		t.Errorf("the queues %+v lack the default one", file.Queues)
	}
	if len(notes) > 0 {
		t.Errorf("of the example does nothing: %q", notes)
	}
}

func readQueues(t *testing.T, name string) (queuesfile.File, []string) {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	file, notes, err := queuesfile.Read(content)
	if err != nil {
		t.Fatal(err)
	}
	return file, notes
}
