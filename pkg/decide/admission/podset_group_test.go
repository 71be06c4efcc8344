package admission_test

import (
	"encoding/json"
	"testing"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// TestPodSetGroupsShareFlavorAndDomain: the first flavor has room for the head alone, and
// the second for both pod sets; in a group both get the second, without one only the
// workers. In a group both go to the rack with room for both.
func TestPodSetGroupsShareFlavorAndDomain(t *testing.T) {
	t.Parallel()
	var config quota.Config
	if err := json.Unmarshal([]byte(`{"resourceFlavors": [{"name": "small"}, {"name": "large"}], "clusterQueues": [{"name": "q", "quotaCheckStrategy": "IgnoreUndeclared",
		"resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
			{"name": "small", "resources": [{"name": "cpu", "nominalQuota": "1"}]}, {"name": "large", "resources": [{"name": "cpu", "nominalQuota": "9"}]}]}]}]}`), &config); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		group string
		head  string
	}{{"", "small"}, {"g", "large"}} {
		t.Run(c.head, func(t *testing.T) {
			t.Parallel()
			s := admission.NewState(treeOf(t, config))
			for name, cpus := range map[string]int64{"a": 1, "b": 2, "c": 4} {
				n := nodeOf(name, cpus, 0)
				n.Labels["rack"] = name
				s.SetNode(n)
			}
			sets := []workload.PodSet{setOf("head", 1, 1, 0), setOf("workers", 2, 1, 0)}
			for i := range sets {
				sets[i].Group = c.group
				sets[i].Topology = &workload.Topology{Mode: workload.TopologyRequired, Level: "rack"}
				if c.group != "" {
					sets[i].Template.Together = []workload.Together{{TopologyKey: "rack", PodSets: []string{sets[1-i].Name}}}
				}
			}
			s.Enqueue(admission.Waiting{Workload: &workload.Workload{ID: "w", Queue: "q", PodSets: sets}})
			plan := decide(s)
			if len(plan.Admissions) != 1 {
				t.Fatalf("plan %+v, want an admission", plan)
			}
			admitted := plan.Admissions[0]
			for _, f := range admitted.Flavors {
				want := map[string]string{"head": c.head, "workers": "large"}[f.PodSet]
				if f.Flavors["cpu"] != want {
					t.Errorf("%s has flavor %q, want %q", f.PodSet, f.Flavors["cpu"], want)
				}
			}
			for _, p := range admitted.Placements {
				if c.group != "" && p.Node != "c" {
					t.Errorf("%s is on node %s, want the rack with room for both", p.PodSet, p.Node)
				}
			}
		})
	}
}
