package kueue_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/policyfile/kueue"
	"muster.dev/muster/pkg/spec/fault"
)

// FuzzRead: whatever is in a file, it is a policy or an error; and a policy is the
// same after it has been stored.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: a}
spec:
  cohort: all
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: default, resources: [{name: cpu, nominalQuota: 1500m, borrowingLimit: 2}]}]
  fairSharing: {weight: "0.5"}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: urgent}
value: 100
`))
	f.Add([]byte("---\napiVersion: kueue.x-k8s.io/v1beta1\nkind: LocalQueue\nmetadata: {name: q}\nspec: {clusterQueue: a}\n"))
	f.Add([]byte("apiVersion: kueue.x-k8s.io/v1beta1\nkind: Topology\nmetadata: {name: t}\n1: 2\n"))
	f.Add([]byte(list))
	f.Add([]byte("kind: List\nitems: [[], 1, null, {kind: List, items: [" + "{apiVersion: kueue.x-k8s.io/v1beta2, kind: Cohort, metadata: {name: c}, spec: {parent: a, parentName: b}}]}]\n"))
	for _, hostile := range []string{"1e99999999", "'1e-99999999'", "-1", "9e18", "[1]"} {
		f.Add([]byte("apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\nmetadata: {name: a}\nspec: {resourceGroups: [{coveredResources: [memory], flavors: [{name: default, resources: [{name: memory, borrowingLimit: 1, nominalQuota: " + hostile + "}]}]}]}\n"))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		kueue.Is(data)
		objects, err := kueue.Parse(data)
		if err != nil {
			var faults fault.List
			if !errors.As(err, &faults) || len(faults) == 0 {
				t.Fatalf("the error has no faults: %v", err)
			}
			return
		}
		config := kueue.Merge(objects)
		if err := config.Validate(); err != nil {
			for _, f := range kueue.Locate(objects, err) {
				if f.Line < 1 {
					t.Fatalf("a fault without a line: %v", f)
				}
			}
			return
		}
		encoded, err := json.Marshal(config)
		if err != nil {
			t.Fatalf("a valid policy cannot be stored: %v", err)
		}
		var stored quota.Config
		if err := json.Unmarshal(encoded, &stored); err != nil {
			t.Fatalf("a stored policy cannot be read: %v\n%s", err, encoded)
		}
		again, err := json.Marshal(stored)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(encoded), string(again)); diff != "" {
			t.Fatalf("stored, the policy is another:\n%s", diff)
		}
	})
}
