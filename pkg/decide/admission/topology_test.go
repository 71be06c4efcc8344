package admission_test

import (
	"encoding/json"
	"strings"
	"testing"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/placement/certificate"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// Racks with one name in two blocks of a Topology are two: a gang that has to be in one rack
// waits, with a proof, until one of them has room. Without the Topology they are one.
func TestAGangIsInOneDomainOfItsTopology(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flavor string
		waits  bool
	}{"with the Topology": {`{"name": "f", "topologyName": "racks"}`, true}, "without": {`{"name": "f"}`, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var config quota.Config
			if err := json.Unmarshal([]byte(`{"topologies": [{"name": "racks", "levels": [{"nodeLabel": "block"}, {"nodeLabel": "rack"}]}], "resourceFlavors": [`+c.flavor+`],
				"clusterQueues": [{"name": "q", "quotaCheckStrategy": "IgnoreUndeclared", "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
					{"name": "f", "resources": [{"name": "cpu", "nominalQuota": "9"}]}]}]}]}`), &config); err != nil {
				t.Fatal(err)
			}
			s := admission.NewState(treeOf(t, config))
			add := func(name, block string) {
				n := nodeOf(name, 1, 0)
				n.Labels["block"], n.Labels["rack"] = block, "r"
				s.SetNode(n)
			}
			add("a", "1")
			add("b", "2")
			set := setOf("workers", 2, 1, 0)
			set.Topology = &workload.Topology{Mode: workload.TopologyRequired, Level: "rack"}
			s.Enqueue(admission.Waiting{Workload: &workload.Workload{ID: "w", Queue: "q", PodSets: []workload.PodSet{set}}})
			if plan := decide(s); (len(plan.Admissions) == 0) != c.waits {
				t.Fatalf("plan %+v; want that it waits: %t", plan, c.waits)
			}
			if !c.waits {
				return
			}
			if why := s.Reason("w"); why.Kind != workload.ReasonTopology || !strings.Contains(why.Message, `must be all in one domain of "block,rack"`) {
				t.Errorf("it waits because of %+v", why)
			}
			document, why := admission.Certify(s, "w", func() bool { return false })
			if why != "" {
				t.Fatalf("there is no proof: %s", why)
			}
			if err := certificate.Verify(document); err != nil {
				t.Errorf("the proof is not believed: %v", err)
			}
			document.Flavors[0].Levels = nil // as if there were no Topology
			if err := certificate.Verify(document); err == nil {
				t.Error("without its Topology the proof is believed, too")
			}
			add("c", "2")
			plan := decide(s)
			if len(plan.Admissions) != 1 || len(plan.Admissions[0].Placements) != 2 || plan.Admissions[0].Placements[0].Node != "b" {
				t.Errorf("plan %+v, want it in block 2", plan)
			}
		})
	}
}
