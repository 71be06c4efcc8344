package app_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/services/queue-manager/app"
)

// Kueue's manifests are a queues file as they are: LocalQueues make the queues.
func TestKueuesManifestsAreAQueuesFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kueue-resources.yaml")
	manifests := `apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: default-flavor}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: cluster-queue}
spec:
  namespaceSelector: {}
  queueingStrategy: StrictFIFO
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: default-flavor, resources: [{name: cpu, nominalQuota: 10000}]}]
  admissionChecks: [rayjob-gpu]
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {namespace: default, name: user-queue}
spec: {clusterQueue: cluster-queue}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {namespace: team-a, name: user-queue}
spec: {clusterQueue: cluster-queue}
`
	if err := os.WriteFile(path, []byte(manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	config := app.Config{NATS: bus.Settings{URL: "nats://localhost"}, DatabaseURL: "postgres://localhost/none", QueuesFile: path}
	if err := config.Validate(); err != nil {
		t.Fatal(err)
	}
	if len(config.Queues) != 1 || config.Queues[0].Name != "user-queue" || config.Queues[0].Strategy != "StrictFIFO" ||
		!slices.Equal(config.Queues[0].Namespaces, []string{"default", "team-a"}) {
		t.Errorf("queues are %+v", config.Queues)
	}
	if len(config.Policy.ClusterQueues) != 1 || len(config.Policy.Flavors) != 1 {
		t.Errorf("policy is %+v", config.Policy)
	}
}
