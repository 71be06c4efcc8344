package kueue_test

import (
	"errors"
	"strings"
	"testing"

	"muster.dev/muster/pkg/kueue"
)

// guide is the manifest of the guide "Gang scheduling with RayJob and Kueue".
const guide = `# kueue-resources.yaml
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata:
  name: "default-flavor"
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: AdmissionCheck
metadata:
  name: rayjob-gpu
spec:
  controllerName: kueue.x-k8s.io/provisioning-request
  parameters:
    apiGroup: kueue.x-k8s.io
    kind: ProvisioningRequestConfig
    name: rayjob-gpu-config
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ProvisioningRequestConfig
metadata:
  name: rayjob-gpu-config
spec:
  provisioningClassName: queued-provisioning.gke.io
  managedResources:
  - nvidia.com/gpu
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata:
  name: "cluster-queue"
spec:
  namespaceSelector: {} # match all
  resourceGroups:
  - coveredResources: ["cpu", "memory", "nvidia.com/gpu"]
    flavors:
    - name: "default-flavor"
      resources:
      - name: "cpu"
        nominalQuota: 10000 # infinite quotas
      - name: "memory"
        nominalQuota: 10000Gi # infinite quotas
      - name: "nvidia.com/gpu"
        nominalQuota: 10000 # infinite quotas
  admissionChecks:
  - rayjob-gpu
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata:
  namespace: "default"
  name: "user-queue"
spec:
  clusterQueue: "cluster-queue"
`

func TestTheGuidesManifestIsReadUnmodified(t *testing.T) {
	t.Parallel()
	if !kueue.Is([]byte(guide)) || kueue.Is([]byte("queues: []")) {
		t.Error("Kueue's manifests are not told from others")
	}
	config, notes, err := kueue.Read([]byte(guide))
	if err != nil {
		t.Fatal(err)
	}
	if len(config.Flavors) != 1 || len(config.ClusterQueues) != 1 || len(config.LocalQueues) != 1 {
		t.Fatalf("read %+v", config)
	}
	quotas := config.ClusterQueues[0].ResourceGroups[0].Flavors[0].Resources
	if quotas[0].Nominal != 10_000_000 || quotas[1].Nominal != 10_000<<30 || quotas[2].Nominal != 10_000 {
		t.Errorf("quotas are %+v", quotas)
	}
	if q := config.LocalQueues[0]; q.Namespace != "default" || q.Name != "user-queue" || q.ClusterQueue != "cluster-queue" {
		t.Errorf("the LocalQueue is %+v", q)
	}
	for i, want := range []string{`AdmissionCheck "rayjob-gpu" does nothing`, `ProvisioningRequestConfig "rayjob-gpu-config" does nothing`, `ClusterQueue "cluster-queue": spec.admissionChecks does nothing`} {
		if i >= len(notes) || !strings.Contains(notes[i], want) {
			t.Errorf("notes are %q, want %q", notes, want)
		}
	}
}

func TestOtherVersionsAndKinds(t *testing.T) {
	t.Parallel()
	config, _, err := kueue.Read([]byte(`apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: old}
spec: {cohort: team}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: new}
spec: {cohortName: team, queueingStrategy: StrictFIFO, preemption: {withinClusterQueue: LowerPriority}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Cohort
metadata: {name: team}
spec: {parentName: all}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: high}
value: 1000
description: first
`))
	if err != nil {
		t.Fatal(err)
	}
	if q := config.ClusterQueues; len(q) != 2 || q[0].Cohort != "team" || q[1].Cohort != "team" || q[1].Strategy != "StrictFIFO" {
		t.Errorf("ClusterQueues are %+v", q)
	}
	if len(config.Cohorts) != 1 || config.Cohorts[0].Parent != "all" || len(config.Priorities) != 1 || config.Priorities[0].Value != 1000 {
		t.Errorf("read %+v", config)
	}
}

func TestUnknownIsNamed(t *testing.T) {
	t.Parallel()
	for manifest, want := range map[string]string{
		"apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\nmetadata: {name: q}\nspec: {colour: red}": `document 1, ClusterQueue "q": spec: json: unknown field "colour"`,
		"apiVersion: kueue.x-k8s.io/v1beta1\nkind: Queue\nmetadata: {name: q}":                             "the kind is not known",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: q}":                                             `apiVersion "v1": want`,
		"apiVersion: kueue.x-k8s.io/v1beta1\nkind: LocalQueue\nmetadata: {}":                               "metadata.name is missing",
		"apiVersion: kueue.x-k8s.io/v1beta1\nkind: ResourceFlavor\nmetadata: {name: a}\n---\n: [":          "document 2",
	} {
		if _, _, err := kueue.Read([]byte(manifest)); !errors.Is(err, kueue.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
