package ray_test

import (
	"encoding/json"
	"strings"
	"testing"

	"muster.dev/muster/pkg/manifest/ray"
)

// ranged is a RayCluster of a head and workers whose template has these annotations.
func ranged(group, annotations, spec string) []byte {
	const container = "spec: {containers: [{name: c, image: ray, resources: {requests: {cpu: 1, memory: 1Gi}}}]}"
	return []byte("apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: c, namespace: team}\nspec:\n" + spec +
		"  headGroupSpec: {rayStartParams: {}, template: {" + container + "}}\n  workerGroupSpecs:\n" +
		"  - {groupName: workers, " + group + ", rayStartParams: {}, template: {metadata: {annotations: {" + annotations + "}}, " + container + "}}\n")
}

// A worker group says with how many replicas it may start at least.
func TestMinReplicas(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		group, annotations, spec string
		least, step              int
		refusal                  string
	}{
		"none":                {"replicas: 4, maxReplicas: 8", "", "", 0, 0, ""},
		"a range":             {"replicas: 4, maxReplicas: 8", "muster.dev/min-replicas: '2'", "", 2, 0, ""},
		"all":                 {"replicas: 4, maxReplicas: 8", "muster.dev/min-replicas: '4'", "", 0, 0, ""},
		"of two hosts":        {"replicas: 4, maxReplicas: 8, numOfHosts: 2", "muster.dev/min-replicas: '3'", "", 6, 2, ""},
		"in slices":           {"replicas: 4, maxReplicas: 8", "muster.dev/min-replicas: '2', kueue.x-k8s.io/podset-slice-required-topology: rack, kueue.x-k8s.io/podset-slice-size: '2'", "", 2, 2, ""},
		"not in whole slices": {"replicas: 4, maxReplicas: 8", "muster.dev/min-replicas: '3', kueue.x-k8s.io/podset-slice-required-topology: rack, kueue.x-k8s.io/podset-slice-size: '2'", "", 0, 0, "whole slices of 2 pods"},
		"zero":                {"replicas: 4, maxReplicas: 8", "muster.dev/min-replicas: '0'", "", 0, 0, "want a whole number from 1 to 4"},
		"more than there are": {"replicas: 4, maxReplicas: 8", "muster.dev/min-replicas: '5'", "", 0, 0, "want a whole number from 1 to 4"},
		"no number":           {"replicas: 4, maxReplicas: 8", "muster.dev/min-replicas: half", "", 0, 0, "want a whole number from 1 to 4"},
		"autoscaled":          {"replicas: 4, maxReplicas: 8", "muster.dev/min-replicas: '2'", "  enableInTreeAutoscaling: true\n", 0, 0, "muster.dev/autoscaling: minimum"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read, err := ray.Shipped().Read(ranged(c.group, c.annotations, c.spec))
			if c.refusal != "" {
				if err == nil || !strings.Contains(err.Error(), c.refusal) {
					t.Errorf("read: %v, want a refusal with %q", err, c.refusal)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if set := read.PodSets[1]; set.MinCount != c.least || set.Step != c.step {
				t.Errorf("at least %d in steps of %d, want %d and %d", set.MinCount, set.Step, c.least, c.step)
			}
		})
	}
}

// The object that is created has the replicas that were admitted: KubeRay creates those.
func TestStampOfFewerReplicas(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		group           string
		pods            int
		replicas, least int
	}{
		"a range":                  {"replicas: 4, maxReplicas: 8", 3, 3, 0},
		"of two hosts":             {"replicas: 4, maxReplicas: 8, numOfHosts: 2", 6, 3, 0},
		"below KubeRay's minimum":  {"replicas: 4, minReplicas: 4, maxReplicas: 8", 2, 2, 2},
		"above KubeRay's minimum":  {"replicas: 4, minReplicas: 1, maxReplicas: 8", 2, 2, 1},
		"no replicas are written":  {"minReplicas: 4, maxReplicas: 8", 3, 3, 3},
		"all of those that it has": {"replicas: 4, maxReplicas: 8", 0, 4, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read, err := ray.Shipped().Read(ranged(c.group, "muster.dev/min-replicas: '2'", ""))
			if err != nil {
				t.Fatal(err)
			}
			in := ray.StampInput{Workload: "w", Cluster: "c", Attempt: 1, Name: "c", Namespace: "team"}
			if c.pods > 0 {
				in.Sizes = map[string]int{"workers": c.pods}
			}
			stamped, err := ray.Stamp(read.Manifest, ray.RayCluster, in)
			if err != nil {
				t.Fatal(err)
			}
			var object struct {
				Spec struct {
					WorkerGroupSpecs []struct{ Replicas, MinReplicas int }
				}
			}
			if err := json.Unmarshal(stamped, &object); err != nil {
				t.Fatal(err)
			}
			if group := object.Spec.WorkerGroupSpecs[0]; group.Replicas != c.replicas || group.MinReplicas != c.least {
				t.Errorf("stamped with %d replicas, at least %d; want %d and %d", group.Replicas, group.MinReplicas, c.replicas, c.least)
			}
		})
	}
}
