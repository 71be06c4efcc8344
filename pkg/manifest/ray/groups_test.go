package ray_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/spec/workload"
)

// grouped is a RayCluster whose head, workers and others have these annotations; there are
// two of each kind of workers.
func grouped(head, workers, others string) []byte {
	template := func(annotations string) string {
		return fmt.Sprintf("{metadata: {annotations: {%s}}, spec: {containers: [{name: c, image: ray, resources: {requests: {cpu: 1, memory: 1Gi}}}]}}", annotations)
	}
	return []byte("apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: c, namespace: team}\nspec:\n" +
		"  headGroupSpec: {rayStartParams: {}, template: " + template(head) + "}\n  workerGroupSpecs:\n" +
		"  - {groupName: workers, replicas: 2, minReplicas: 2, maxReplicas: 2, rayStartParams: {}, template: " + template(workers) + "}\n" +
		"  - {groupName: others, replicas: 2, minReplicas: 2, maxReplicas: 2, rayStartParams: {}, template: " + template(others) + "}\n")
}

// TestPodSetGroups: the head and a group of workers in one pod-set group share a domain;
// groups that Kueue refuses are refused.
func TestPodSetGroups(t *testing.T) {
	t.Parallel()
	const group, required, preferred = "kueue.x-k8s.io/podset-group-name: g, ", "kueue.x-k8s.io/podset-required-topology: rack", "kueue.x-k8s.io/podset-preferred-topology: rack"
	together := func(name string) []workload.Together {
		return []workload.Together{{TopologyKey: "rack", PodSets: []string{name}}}
	}
	for name, c := range map[string]struct {
		head, workers, others string
		bound                 bool
		refusal               string
	}{
		"required":         {group + required, group + required, "", true, ""},
		"preferred":        {group + preferred, group + preferred, "", false, ""},
		"one pod set":      {group + required, required, "", false, "want two pod sets"},
		"three pod sets":   {group + required, group + required, group + required, false, "want two pod sets"},
		"no single pod":    {"", group + required, group + required, false, "want one of them to have a single pod"},
		"no topology":      {group, group, "", false, "without a topology"},
		"two topologies":   {group + required, group + preferred, "", false, "another topology"},
		"slices":           {group + required, group + required + ", kueue.x-k8s.io/podset-slice-required-topology: host, kueue.x-k8s.io/podset-slice-size: '2'", "", false, "choose one of them"},
		"no name of group": {"kueue.x-k8s.io/podset-group-name: 'a b', " + required, group + required, "", false, "cannot be the value"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read, err := ray.Shipped().Read(grouped(c.head, c.workers, c.others))
			if c.refusal != "" {
				if err == nil || !strings.Contains(err.Error(), c.refusal) {
					t.Errorf("read: %v, want a refusal with %q", err, c.refusal)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			head, workers := read.PodSets[0], read.PodSets[1]
			if head.Group != "g" || workers.Group != "g" || read.PodSets[2].Group != "" {
				t.Errorf("groups are %q, %q and %q", head.Group, workers.Group, read.PodSets[2].Group)
			}
			want := [][]workload.Together{nil, nil}
			if c.bound {
				want = [][]workload.Together{together("workers"), together(head.Name)}
			}
			if diff := cmp.Diff(want, [][]workload.Together{head.Template.Together, workers.Template.Together}); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
		})
	}
}
