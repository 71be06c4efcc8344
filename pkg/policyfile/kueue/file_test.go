package kueue_test

import (
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/pkg/policyfile/kueue"
)

// list is what `kubectl get clusterqueues,localqueues -A -o yaml` shows.
const list = `apiVersion: v1
items:
- apiVersion: kueue.x-k8s.io/v1beta1
  kind: ClusterQueue
  metadata:
    name: a
    finalizers: [kueue.x-k8s.io/resource-in-use]
    managedFields: [{manager: kubectl}]
  spec: {namespaceSelector: {}}
  status: {pendingWorkloads: 1}
- apiVersion: kueue.x-k8s.io/v1beta1
  kind: LocalQueue
  metadata: {name: a, namespace: team-a}
  spec: {clusterQueue: a}
kind: List
metadata: {resourceVersion: ""}
`

const (
	namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: team-a}\n"
	cohort    = "apiVersion: kueue.x-k8s.io/v1beta1\nkind: Cohort\nmetadata: {name: all}\n"
)

// A file of kubectl's is read as if its objects were documents, and those of other kinds are
// named and skipped.
func TestFilesOfKubectl(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file           string
		names, skipped []string
	}{
		"a list":                  {list, []string{"ClusterQueue/a", "LocalQueue/a"}, nil},
		"the list of a kind":      {strings.Replace(strings.Replace(list, "kind: List", "kind: ClusterQueueList", 1), "apiVersion: v1", "apiVersion: kueue.x-k8s.io/v1beta1", 1), []string{"ClusterQueue/a", "LocalQueue/a"}, nil},
		"a list and a document":   {list + "---\n" + cohort, []string{"ClusterQueue/a", "LocalQueue/a", "Cohort/all"}, nil},
		"an empty list beside":    {"apiVersion: v1\nkind: List\nitems: []\n---\n" + cohort, []string{"Cohort/all"}, nil},
		"another kind comes":      {cohort + "---\n" + namespace, []string{"Cohort/all"}, []string{"skipped Namespace team-a: not a queue object"}},
		"another kind goes first": {namespace + "---\n" + cohort, []string{"Cohort/all"}, []string{"skipped Namespace team-a: not a queue object"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects, skipped, err := kueue.ParseFile([]byte(c.file))
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, o := range objects {
				names = append(names, o.Kind+"/"+o.Name)
			}
			if !slices.Equal(names, c.names) || !slices.Equal(skipped, c.skipped) || !kueue.Is([]byte(c.file)) {
				t.Errorf("read %q and %q, Kueue's: %v; want %q and %q", names, skipped, kueue.Is([]byte(c.file)), c.names, c.skipped)
			}
		})
	}
}

// What is probably a mistake is not skipped: a file of other kinds alone, one of Kueue's kinds
// in another group, and what is no object.
func TestMistakesAreNotSkipped(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		namespace: `Namespace "team-a": apiVersion: "v1": want kueue.x-k8s.io/v1beta1 or v1beta2`,
		cohort + "---\n" + strings.Replace(cohort, "kueue.x-k8s.io", "kueue.x-k8s", 1):                                                        `line 5: Cohort "all": apiVersion: "kueue.x-k8s/v1beta1": want`,
		cohort + "---\nkind: Namespace\n":                                                                                                     `Namespace "": apiVersion: "": want`,
		cohort + "---\napiVersion: kueue.x-k8s.io/v1beta1\nkind: Workload\nmetadata: {name: w}\n":                                             `Workload "w": kind: is not known; want one of`,
		"apiVersion: v1\nkind: List\nitems: [7, " + `{"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"Cohort","metadata":{"name":"c"}}` + "]\n": "want a manifest, an object with",
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			if _, _, err := kueue.ParseFile([]byte(file)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("the error is %v, want %q", err, want)
			}
		})
	}
}
