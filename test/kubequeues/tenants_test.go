package kubequeues

import (
	"fmt"
	"strings"
	"testing"
)

// tenant has a queue of the same name as every other tenant, and a ClusterQueue of its own with
// 2 GPUs.
func tenant(name string) string {
	return strings.ReplaceAll(`apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: TENANT-cq}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu, memory, nvidia.com/gpu]
    flavors:
    - name: any
      resources: [{name: cpu, nominalQuota: 100}, {name: memory, nominalQuota: 100Gi}, {name: nvidia.com/gpu, nominalQuota: 2}]
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: user-queue, namespace: TENANT}
spec: {clusterQueue: TENANT-cq}
---
`, "TENANT", name)
}

// TestTenantsHaveQueuesOfOneName: Kueue's usual layout. kubectl shows each LocalQueue and each
// ClusterQueue with its own counts, and one that asks for more is inactive alone.
func TestTenantsHaveQueuesOfOneName(t *testing.T) {
	s := startFor(t, nil, "team-a", "team-b")
	withDefinitions(t, s)
	create := func(namespace, manifests string) { must(t, s, manifests, "apply", "-n", namespace, "-f", "-") }
	asksForMore := strings.Replace(tenant("team-a"), "namespaceSelector: {}", "admissionChecks: [nope]", 1)
	create("team-a", "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ResourceFlavor\nmetadata: {name: any}\n---\n"+asksForMore)
	create("team-b", tenant("team-b"))
	if err := s.AddNodes(t.Context(), "gpu", 1, "cpu=32", "memory=64Gi", "nvidia.com/gpu=8"); err != nil {
		t.Fatal(err)
	}
	must(t, s, "", "wait", "--for=condition=Active=False", "clusterqueue/team-a-cq", "--timeout=60s")
	must(t, s, "", "wait", "--for=condition=Active=False", "localqueue/user-queue", "-n", "team-a", "--timeout=60s")
	must(t, s, "", "wait", "--for=condition=Active", "localqueue/user-queue", "-n", "team-b", "--timeout=60s")

	create("team-a", tenant("team-a"))
	must(t, s, "", "wait", "--for=condition=Active", "localqueue/user-queue", "-n", "team-a", "--timeout=60s")
	for i, namespace := range []string{"team-a", "team-b", "team-b", "team-b", "team-b"} { // each asks for 1 of 2 GPUs
		must(t, s, strings.ReplaceAll(rayJob(1), "pytorch-text-classifier", fmt.Sprintf("job-%d", i)), "create", "-n", namespace, "-f", "-")
	}
	for namespace, want := range map[string]string{"team-a": "0 1 1", "team-b": "2 2 2"} {
		until(t, fmt.Sprintf("the LocalQueue of %s counts %s", namespace, want), func() bool {
			return field(t, s, localQueues, namespace, "user-queue", counts) == want
		})
		until(t, fmt.Sprintf("the ClusterQueue of %s counts %s", namespace, want), func() bool {
			return field(t, s, clusterQueues, "", namespace+"-cq", counts) == want
		})
	}
	answer, err := s.Queries.Queues(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range answer.ClusterQueues {
		if strings.HasPrefix(q.Name, "team-") && (len(q.Queues) != 1 || q.Queues[0] != strings.TrimSuffix(q.Name, "-cq")+"/user-queue") {
			t.Errorf("ClusterQueue %s has the queues %q", q.Name, q.Queues)
		}
	}
}
