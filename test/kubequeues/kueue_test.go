package kubequeues

import (
	"context"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

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
	admin, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig)
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
