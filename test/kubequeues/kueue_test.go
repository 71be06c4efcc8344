package kubequeues

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"muster.dev/muster/deploy/crd"
	"muster.dev/muster/deploy/install"
)

// workloads stands for Kueue's own definition: that it is there is how Kueue is
// recognised.
const workloads = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: workloads.kueue.x-k8s.io, annotations: {api-approved.kubernetes.io: "https://github.com/kubernetes-sigs/kueue"}}
spec:
  group: kueue.x-k8s.io
  names: {kind: Workload, plural: workloads}
  scope: Namespaced
  versions: [{name: v1beta1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

// Where Kueue is installed its queue label is its own, Muster's is still Muster's,
// and the cluster's ClusterQueues are left to Kueue.
func TestWhereKueueIsItsLabelIsItsOwn(t *testing.T) {
	s := start(t, "kueue-is-there", nil)
	must(t, s, workloads, "apply", "-f", "-")
	t.Cleanup(func() { _, _ = s.Kubectl(context.Background(), workloads, "delete", "--wait=true", "-f", "-") })
	must(t, s, workloads, "wait", "--for=condition=Established", "-f", "-", "--timeout=30s")
	admin, err := clientcmd.BuildConfigFromFlags("", shared.Use(t).Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if err := install.Install(t.Context(), admin, []string{s.Pool}, []string{s.Namespace}); err != nil {
		t.Fatal(err)
	}
	suspended := func(label string) string {
		manifest := `{"apiVersion":"ray.io/v1","kind":"RayCluster","metadata":{"name":"probe","labels":{"` + label + `":"unused"}},"spec":{"headGroupSpec":{"rayStartParams":{},"template":{"spec":{"containers":[{"name":"r","image":"r"}]}}}}}`
		return must(t, s, manifest, "create", "--dry-run=server", "-o", "jsonpath={.spec.suspend}", "-f", "-")
	}
	until(t, "the policies are in force", func() bool { return suspended("kueue.x-k8s.io/queue-name") == "" })
	if got := strings.TrimSpace(suspended("muster.dev/queue-name")); got != "true" {
		t.Errorf("with Muster's label suspend is %q, want true", got)
	}
}

// Where Kueue is not installed, its definitions of Muster's own let kubectl apply Kueue's
// manifests, of both versions; with Kueue, or a definition that is not Muster's, the
// installation refuses and changes nothing.
func TestKueueDefinitions(t *testing.T) {
	s := start(t, "default", nil)
	admin, err := clientcmd.BuildConfigFromFlags("", shared.Use(t).Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	refuses := func(definition, message string) {
		t.Helper()
		must(t, s, definition, "apply", "-f", "-")
		err := install.KueueDefinitions(t.Context(), admin)
		if err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("the installation ends with %v, want an error that says %q", err, message)
		}
		if found := must(t, s, "", "get", "crd", "-o", "name"); strings.Contains(found, "localqueues.kueue") {
			t.Errorf("it has installed definitions all the same:\n%s", found)
		}
		must(t, s, definition, "delete", "--wait=true", "-f", "-")
	}
	refuses(workloads, "Kueue is installed here")
	refuses(strings.NewReplacer("workloads", "topologies", "Workload", "Topology", "Namespaced", "Cluster").Replace(workloads),
		"definition topologies.kueue.x-k8s.io: exists and is not Muster's")

	for range 2 {
		if err := install.KueueDefinitions(t.Context(), admin); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		all := bytes.Join(crd.Kueue(), []byte("\n---\n")) // together: flavors stay as long as their queues
		_, _ = s.Kubectl(context.Background(), string(all), "delete", "--wait=true", "-f", "-")
	})
	manifests, err := os.ReadFile("../../services/muster/examples/kueue-resources.yaml")
	if err != nil {
		t.Fatal(err)
	}
	must(t, s, string(manifests), "apply", "-n", "default", "-f", "-")
	must(t, s, newer, "apply", "-n", "default", "-f", "-")
	for _, queue := range []string{"clusterqueue/cluster-queue", "localqueue/user-queue", "cq/newer", "lq/newer"} {
		must(t, s, "", "wait", "--for=condition=Active", queue, "-n", "default", "--timeout=90s")
	}
	if table := must(t, s, "", "get", "lq", "newer", "-n", "default"); !strings.Contains(table, "CLUSTERQUEUE") || !strings.Contains(table, "True") {
		t.Errorf("kubectl shows\n%s", table)
	}
	if message, err := kubectl(t, s, strings.ReplaceAll(newer, "{clusterQueue: newer}", "{}"), "apply", "-n", "default", "-f", "-"); err == nil || !strings.Contains(message+err.Error(), "spec.clusterQueue") {
		t.Errorf("a LocalQueue without a ClusterQueue: %v: %s", err, message)
	}
}

// newer is a queue in the words of v1beta2.
const newer = `apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: urgent}
value: 100
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: newer}
spec:
  cohortName: all
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: default-flavor, resources: [{name: cpu, nominalQuota: 4}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: newer, namespace: default}
spec: {clusterQueue: newer}
`
