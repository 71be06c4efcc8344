package kubequeues

import (
	"os"
	"path/filepath"
	"testing"
)

// TestDefinitionsMayGoBeforeTheirObjects: one after the other, those that others refer to
// first. Nothing of Muster's keeps one; made again, the queues are synced as before.
func TestDefinitionsMayGoBeforeTheirObjects(t *testing.T) {
	definitions, err := os.ReadFile(filepath.Join("testdata", "kueue-crds.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s := startFor(t, nil, "team-d")
	withDefinitions(t, s)
	queues := "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ResourceFlavor\nmetadata: {name: any}\n---\n" + tenant("team-d")
	create := func() {
		must(t, s, queues, "apply", "-n", "team-d", "-f", "-")
		for _, queue := range []string{"clusterqueue/team-d-cq", "localqueue/user-queue"} {
			must(t, s, "", "wait", "--for=condition=Active", queue, "-n", "team-d", "--timeout=90s")
		}
	}
	create()
	kinds := []string{"resourceflavors", "cohorts", "clusterqueues", "topologies", "admissionchecks", "workloadpriorityclasses", "provisioningrequestconfigs", "localqueues"}
	for _, kind := range kinds {
		definition := "customresourcedefinition/" + kind + ".kueue.x-k8s.io"
		must(t, s, "", "delete", definition, "--wait=false")
	}
	for _, kind := range kinds {
		must(t, s, "", "wait", "--for=delete", "customresourcedefinition/"+kind+".kueue.x-k8s.io", "--timeout=90s")
	}
	must(t, s, string(definitions), "apply", "--server-side", "-f", "-")
	must(t, s, string(definitions), "wait", "--for=condition=Established", "-f", "-", "--timeout=30s")
	create()
}
