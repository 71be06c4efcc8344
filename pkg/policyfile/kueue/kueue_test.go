package kueue_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/policyfile/kueue"
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
	objects, err := kueue.Parse([]byte(guide))
	if err != nil {
		t.Fatal(err)
	}
	config := kueue.Merge(objects)
	var notes []string
	for _, o := range objects {
		notes = append(notes, o.Notes...)
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
	if len(notes) > 0 {
		t.Errorf("notes are %q, want none", notes)
	}
	if c := config.ProvisioningConfigs; len(c) != 1 || c[0].Class != "queued-provisioning.gke.io" || len(c[0].ManagedResources) != 1 {
		t.Errorf("the ProvisioningRequestConfigs are %+v", c)
	}
}

func TestOtherVersionsAndKinds(t *testing.T) {
	t.Parallel()
	objects, err := kueue.Parse([]byte(`apiVersion: kueue.x-k8s.io/v1beta1
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
	config := kueue.Merge(objects)
	if q := config.ClusterQueues; len(q) != 2 || q[0].Cohort != "team" || q[1].Cohort != "team" || q[1].Strategy != "StrictFIFO" {
		t.Errorf("ClusterQueues are %+v", q)
	}
	if len(config.Cohorts) != 1 || config.Cohorts[0].Parent != "all" || len(config.Priorities) != 1 || config.Priorities[0].Value != 1000 {
		t.Errorf("read %+v", config)
	}
}

// What is accepted and has no effect is named, so that its author does not count on it.
func TestWhatDoesNothingIsNamed(t *testing.T) {
	t.Parallel()
	for manifest, want := range map[string]string{
		"kind: MultiKueueConfig\nmetadata: {name: m}\nspec: {clusters: [a]}":              `MultiKueueConfig "m" does nothing: Muster chooses among its clusters by itself`,
		"kind: MultiKueueCluster\nmetadata: {name: m}\nspec: {kubeConfig: {location: a}}": `MultiKueueCluster "m" does nothing`,
	} {
		t.Run(want, func(t *testing.T) {
			objects, err := kueue.Parse([]byte("apiVersion: kueue.x-k8s.io/v1beta1\n" + manifest))
			if err != nil {
				t.Fatal(err)
			}
			if notes := objects[0].Notes; len(notes) != 1 || !strings.Contains(notes[0], want) {
				t.Errorf("notes are %q, want %q", notes, want)
			}
		})
	}
}

func TestFaultsHaveTheDocumentAndLine(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: kueue.x-k8s.io/v1beta1\nkind: "
	for manifest, want := range map[string]string{
		head + "ClusterQueue\nmetadata: {name: q}\nspec:\n  colour: red":                                           `line 5: ClusterQueue "q": spec.colour: there is no such field; want one of name, cohortName, resourceGroups, quotaCheckStrategy, queueingStrategy, flavorFungibility, preemption, backfill, fairSharing, stopPolicy, admissionScope, namespaceSelector, admissionChecks, admissionChecksStrategy`,
		head + "ClusterQueue\nmetadata: {name: q}\nspec:\n  name: red":                                             `line 5: ClusterQueue "q": spec.name: there is no such field; the name is in metadata`,
		head + "ClusterQueue\nmetadata: {name: q}\nspec: []":                                                       `line 4: ClusterQueue "q": spec: want an object`,
		head + "Queue\nmetadata: {name: q}":                                                                        `line 2: Queue "q": kind: is not known; want one of ResourceFlavor, Cohort, ClusterQueue, LocalQueue, WorkloadPriorityClass, AdmissionCheck, ProvisioningRequestConfig, MultiKueueConfig, MultiKueueCluster, Topology, QueueHold, ClusterQueueHold, Cluster, ClusterCordon, Reservation, Budget, BudgetHold`,
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: q}":                                                     `line 1: ConfigMap "q": apiVersion: "v1": want kueue.x-k8s.io/v1beta1 or v1beta2`,
		head + "Cohort\nmetadata: {name: q}\nsepc: {}":                                                             `line 4: Cohort "q": sepc: there is no such field; want one of apiVersion, kind, metadata, spec, value, description, status`,
		head + "Cohort\nmetadata: &m {name: q}":                                                                    `line 3: Cohort "q": the YAML alias or anchor "m": write the value out`,
		head + "Topology\nmetadata: {name: t}\nspec:\n  levels:\n  - {nodeLabel: rack}\n  - {nodeLabel: rack row}": `line 7: Topology "t": spec.levels[1].nodeLabel: "rack row": want a key of a label, such as example.com/rack`,
		head + "Topology\nmetadata: {name: t}":                                                                     `line 1: Topology "t": spec.levels: has 0 levels; want 1 to 16`,
		"[]":                                                                                                       `line 1: want a manifest, an object with apiVersion, kind, metadata, spec, value, description, status`,
		head + "LocalQueue\nmetadata: {}":                                                                          `line 3: LocalQueue "": metadata.name: is missing`,
		head + "ResourceFlavor\nmetadata: {name: a}\n---\n: [":                                                     `line 4: did not find expected key`,
		head + "WorkloadPriorityClass\nmetadata: {name: a}\nvalue: high":                                           `line 4: WorkloadPriorityClass "a": value: "high": want a whole number`,
		head + "ClusterQueue\nmetadata: {name: a}\nspec: {stopPolicy: 1}\n---\n" + head + "Cohort\nmetadata: {name: a}\nspec:\n  fairSharing: {weight: x}": `line 4: ClusterQueue "a": spec.stopPolicy: 1: want a text, such as "1" with the quotes` + "\n" +
			`line 10: Cohort "a": spec.fairSharing.weight: "x": want a number that is not negative, such as 2 or 0.5`,
	} {
		t.Run(manifest, func(t *testing.T) {
			if _, err := kueue.Parse([]byte(manifest)); err == nil || err.Error() != want {
				t.Errorf("%s\nis refused with\n%v\nwant\n%s", manifest, err, want)
			}
		})
	}
}

// A fault of the policy as a whole is located in its manifest.
func TestThePolicysFaultsAreLocated(t *testing.T) {
	t.Parallel()
	objects, err := kueue.Parse([]byte(`apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata:
  name: q
spec:
  queueingStrategy: Sometimes
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - name: gold
      resources: [{name: cpu, nominalQuota: 1}]
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: l}
spec: {clusterQueue: other}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata:
  labels: {a: b}
  name: q
`))
	if err != nil {
		t.Fatal(err)
	}
	want := `line 22: ClusterQueue "q": metadata.name: "q" is a duplicate of clusterQueues[0]; want another name
line 10: ClusterQueue "q": spec.resourceGroups[0].flavors[0].name: "gold": there is no resourceFlavor of this name, nor any other
line 6: ClusterQueue "q": spec.queueingStrategy: "Sometimes": want one of BestEffortFIFO, StrictFIFO, Backfill
line 16: LocalQueue "l": spec.clusterQueue: "other": there is no clusterQueue of this name; there are q`
	config := kueue.Merge(objects)
	got := strings.Split(kueue.Locate(objects, config.Validate()).Error(), "\n")
	wanted := strings.Split(want, "\n")
	slices.Sort(got)
	slices.Sort(wanted)
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

// What is read from JSON is at no line, and no number or text in it becomes
// another's.
func TestOneManifestInJSON(t *testing.T) {
	t.Parallel()
	const manifest = `{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass", "metadata": {"name": "high", "uid": "1", "annotations": {"a": "\u0085\ud83d\ude00"}}, "value": 10, "description": "true", "status": {}}`
	object, err := kueue.ParseOne([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"apiVersion":"kueue.x-k8s.io/v1beta2","description":"true","kind":"WorkloadPriorityClass","metadata":{"name":"high","namespace":""},"value":10}`
	if diff := cmp.Diff(want, string(object.Manifest)); diff != "" {
		t.Errorf("the manifest (-want +got):\n%s", diff)
	}
	again, err := kueue.ParseOne(object.Manifest)
	if err != nil || string(again.Manifest) != want {
		t.Errorf("read again it is %s, %v", again.Manifest, err)
	}
	for manifest, want := range map[string]string{
		`{`:  "the manifest is no JSON: unexpected EOF",
		`[]`: "want a manifest, an object with apiVersion, kind, metadata, spec, value, description, status",
		`{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Cohort", "metadata": {"name": "c"}, "spec": {"colour": "red", "parentName": 1}}`: `Cohort "c": spec.colour: there is no such field; want one of name, parentName, resourceGroups, fairSharing` + "\n" +
			`Cohort "c": spec.parentName: 1: want a text, such as "1" with the quotes`,
	} {
		t.Run(manifest, func(t *testing.T) {
			if _, err := kueue.ParseOne([]byte(manifest)); err == nil || err.Error() != want {
				t.Errorf("%s\nis refused with\n%v\nwant\n%s", manifest, err, want)
			}
		})
	}
}

// A new object has the fields of its version; what was applied before stays readable.
func TestFieldsOfAnotherVersion(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]string{
		`"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "spec": {"cohort": "a"}`:                    "",
		`"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "spec": {"cohortName": "a"}`:                "",
		`"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "spec": {"cohort": "a"}`:                    `ClusterQueue "q": spec.cohort: there is no such field in v1beta2; want cohortName`,
		`"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "spec": {"cohort": "b", "cohortName": "a"}`: `ClusterQueue "q": spec.cohort: is the former name of cohortName, which is there, too; leave it out`,
		`"apiVersion": "kueue.x-k8s.io/v1alpha1", "kind": "Cohort", "spec": {"parent": "a"}`:                         "",
		`"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Cohort", "spec": {"parent": "a"}`:                          `Cohort "q": spec.parent: there is no such field in v1beta1; want parentName`,
		`"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Cohort", "spec": {"parent": "b", "parentName": "a"}`:       `Cohort "q": spec.parent: is the former name of parentName, which is there, too; leave it out`,
	} {
		t.Run(spec, func(t *testing.T) {
			t.Parallel()
			object, err := kueue.ParseOne([]byte(`{"metadata": {"name": "q"}, ` + spec + `}`))
			if err != nil {
				t.Fatal(err)
			}
			if got := object.FaultsIfNew(); (len(got) > 0) != (want != "") || want != "" && got.Error() != want {
				t.Errorf("faults if new: %v; want %q", got, want)
			}
			for _, q := range object.Policy.ClusterQueues {
				if q.Cohort != "a" {
					t.Errorf("the cohort is %q, want a", q.Cohort)
				}
			}
			for _, c := range object.Policy.Cohorts {
				if c.Parent != "a" {
					t.Errorf("the parent is %q, want a", c.Parent)
				}
			}
		})
	}
}

// Nothing is admitted through a queue that its cluster is deleting. No manifest says so, and
// a file that kubectl has shown is not deleted where it is applied.
func TestADeletedQueueIsStopped(t *testing.T) {
	t.Parallel()
	manifest := func(spec, at string) []byte {
		return []byte(`{"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "metadata": {"name": "q", "deletionTimestamp": "` + at + `"}, "spec": {` + spec + `}}`)
	}
	const at = "2026-01-02T15:04:05Z"
	for spec, want := range map[string]string{``: quota.Deleting, `"stopPolicy": "Hold"`: quota.Deleting, `"stopPolicy": "HoldAndDrain"`: quota.HoldAndDrain} {
		t.Run("{"+spec+"}", func(t *testing.T) {
			object, err := kueue.ParseOne(manifest(spec, at))
			if err != nil {
				t.Fatal(err)
			}
			again, err := kueue.ParseOne(object.Manifest)
			if err != nil || again.Deleted != at || again.Policy.ClusterQueues[0].StopPolicy != want || string(again.Manifest) != string(object.Manifest) {
				t.Errorf("with {%s} it reads as %+v, %v; want deleted at %s and stopPolicy %s", spec, again, err, at, want)
			}
			ofFile, err := kueue.Parse(manifest(spec, at))
			if err != nil || len(ofFile) != 1 || ofFile[0].Deleted != "" || ofFile[0].Policy.ClusterQueues[0].StopPolicy == quota.Deleting {
				t.Errorf("in a file {%s} reads as %+v, %v; want no deletion", spec, ofFile, err)
			}
		})
	}
	if _, err := kueue.ParseOne(manifest(`"stopPolicy": "Deleting"`, "")); err == nil || !strings.Contains(err.Error(), `spec.stopPolicy: "Deleting": want one of None, Hold, HoldAndDrain`) {
		t.Errorf("stopPolicy Deleting in a manifest: %v", err)
	}
	if _, err := kueue.ParseOne(manifest(``, "now")); err == nil || !strings.Contains(err.Error(), `metadata.deletionTimestamp: "now": want a time`) {
		t.Errorf("another time: %v", err)
	}
}

// A fault of a policy that is in no file names its objects.
func TestFaultsOfAPolicyAreNamed(t *testing.T) {
	t.Parallel()
	policy := quota.Config{ClusterQueues: []quota.ClusterQueue{{Name: "a"}, {Name: "b", StopPolicy: "Stop"}}, LocalQueues: []quota.LocalQueue{{Name: "l", Namespace: "n", ClusterQueue: "c"}}}
	want := `ClusterQueue "b": spec.stopPolicy: "Stop": want one of None, Hold, HoldAndDrain
LocalQueue "l" of namespace "n": spec.clusterQueue: "c": there is no clusterQueue of this name; there are a, b`
	if diff := cmp.Diff(want, kueue.Name(policy, policy.Validate()).Error()); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}
