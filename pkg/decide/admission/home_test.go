package admission_test

import (
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
)

// nodeIn returns a node of a cluster.
func nodeIn(cluster, name string, gpus int64) capacity.Node {
	n := nodeOf(name, 8, gpus)
	n.Cluster = cluster
	return n
}

// enqueueAt enqueues a gang whose object a user created in a cluster with kubectl.
func enqueueAt(s *admission.State, home string, id workload.ID, order int64, sets []workload.PodSet) {
	s.Enqueue(admission.Waiting{Order: order, Workload: &workload.Workload{
		ID: id, Queue: "queue", PodSets: sets, Submitter: workload.ByKubernetes + "/" + home + "/ana",
	}})
}

func admitted(plan admission.Plan) map[workload.ID]string {
	clusters := map[workload.ID]string{}
	for _, a := range plan.Admissions {
		clusters[a.Workload] = a.Cluster
	}
	return clusters
}

// A gang whose object is in a cluster runs there or waits, whatever is free elsewhere. A
// gang with equal pods that may be anywhere is not kept back by it.
func TestAGangWithAHomeRunsThereOrWaits(t *testing.T) {
	t.Parallel()
	sets := []workload.PodSet{setOf("workers", 1, 1, 2)}
	s := stateOf([]capacity.Node{nodeIn("full", "a", 1), nodeIn("free", "b", 4)})
	enqueueAt(s, "full", "home", 0, sets)
	enqueue(s, 1, "queue", sets)
	plan := decide(s)
	if got := admitted(plan); len(got) != 1 || got["gang-1"] != "free" {
		t.Fatalf("admitted are %v, want gang-1 on cluster free alone", got)
	}
	if reason := plan.Waits[0].Reason; reason.Shortage == nil || reason.Shortage.Nodes != 1 {
		t.Errorf("the reason is %+v, want a shortage on the one node of its cluster", reason)
	}
	s.SetNode(nodeIn("free", "c", 8))
	if got := admitted(decide(s)); len(got) > 0 {
		t.Errorf("a node of another cluster has admitted %v", got)
	}
	s.SetNode(nodeIn("full", "d", 2))
	if got := admitted(decide(s)); got["home"] != "full" {
		t.Errorf("with room at home admitted are %v", got)
	}
}

// A cluster that has reported no node is named. The gang is admitted when one comes.
func TestAGangWaitsForTheNodesOfItsHome(t *testing.T) {
	t.Parallel()
	s := stateOf([]capacity.Node{nodeIn("free", "b", 4)})
	enqueueAt(s, "away", "home", 0, []workload.PodSet{setOf("workers", 1, 1, 2)})
	plan := decide(s)
	if reason := plan.Waits[0].Reason; reason.Kind != workload.ReasonNoNodes || !strings.Contains(reason.Message, `cluster "away"`) {
		t.Errorf("the reason is %+v", reason)
	}
	s.SetNode(nodeIn("away", "a", 2))
	if got := admitted(decide(s)); got["home"] != "away" {
		t.Errorf("admitted are %v", got)
	}
}

// A gang with a home evicts gangs there, and none elsewhere.
func TestAGangWithAHomeEvictsThereOnly(t *testing.T) {
	t.Parallel()
	pair := []workload.PodSet{setOf("workers", 1, 1, 2)}
	for name, test := range map[string]struct {
		home  string
		evict bool
	}{"where the victim runs": {"busy", true}, "elsewhere": {"small", false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := admission.NewState(treeOf(t, gpuPolicy(t, false, gpuQueue("queue", 2, `"withinClusterQueue": "LowerPriority"`))))
			s.SetNode(nodeIn("busy", "a", 2))
			s.SetNode(nodeIn("small", "b", 1))
			enqueue(s, 0, "queue", pair)
			if got := admitted(admission.Decide(s, start.Add(-time.Minute))); got["gang-0"] != "busy" {
				t.Fatalf("admitted are %v", got)
			}
			s.Enqueue(admission.Waiting{Order: 1, Workload: &workload.Workload{
				ID: "urgent", Queue: "queue", Priority: 10, PodSets: pair, Submitter: workload.ByKubernetes + "/" + test.home + "/ana",
			}})
			if plan := decide(s); len(plan.Evictions) > 0 != test.evict {
				t.Errorf("evictions are %+v, want some: %t; waits are %+v", plan.Evictions, test.evict, plan.Waits)
			}
		})
	}
}
