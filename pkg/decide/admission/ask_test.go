package admission_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// askingConfig is a queue with that many GPUs of quota whose check asks for nodes.
func askingConfig(gpus int64, managed ...resource.Name) quota.Config {
	limit := func(name resource.Name, amount int64) quota.ResourceQuota {
		return quota.ResourceQuota{Name: name, Nominal: amount}
	}
	return quota.Config{
		Flavors: []quota.Flavor{{Name: "default"}},
		ClusterQueues: []quota.ClusterQueue{{
			Name: "queue", AdmissionChecks: []string{"nodes"},
			ResourceGroups: []quota.ResourceGroup{{
				CoveredResources: []resource.Name{"cpu", "nvidia.com/gpu"},
				Flavors:          []quota.FlavorQuotas{{Name: "default", Resources: []quota.ResourceQuota{limit("cpu", 1_000_000), limit("nvidia.com/gpu", gpus)}}},
			}},
		}},
		AdmissionChecks: []quota.AdmissionCheck{{
			Name: "nodes", ControllerName: quota.ProvisioningController,
			Parameters: &quota.CheckParameters{APIGroup: "kueue.x-k8s.io", Kind: "ProvisioningRequestConfig", Name: "config"},
		}},
		ProvisioningConfigs: []quota.ProvisioningConfig{{Name: "config", Class: "queued-provisioning.gke.io", ManagedResources: managed}},
	}
}

func askingState(t *testing.T, c quota.Config, nodes ...capacity.Node) *admission.State {
	t.Helper()
	s := admission.NewState(treeOf(t, c))
	for _, n := range nodes {
		s.SetNode(n)
	}
	return s
}

// text is what a plan does, in a line.
func text(p admission.Plan) string {
	var all []string
	for _, a := range p.Asks {
		all = append(all, fmt.Sprintf("ask %s %v", a.Workload, a.Pods))
	}
	for _, a := range p.Admissions {
		all = append(all, "admit "+string(a.Workload))
	}
	for _, e := range p.Evictions {
		all = append(all, "evict "+string(e.Workload))
	}
	return strings.Join(all, ", ")
}

func wantPlan(t *testing.T, p admission.Plan, want string) {
	t.Helper()
	if got := text(p); got != want {
		t.Errorf("the plan is %q, want %q; waits: %+v", got, want, p.Waits)
	}
}

func TestAGangAsksForThePodsThatLackAPlace(t *testing.T) {
	t.Parallel()
	gpu := resource.Name("nvidia.com/gpu")
	head, workers := setOf("head", 1, 2, 0), setOf("workers", 4, 1, 1)
	for name, test := range map[string]struct {
		managed []resource.Name
		nodes   []capacity.Node
		sets    []workload.PodSet
		want    string
	}{
		"all workers":                {[]resource.Name{gpu}, []capacity.Node{nodeOf("cpu", 8, 0)}, []workload.PodSet{head, workers}, "ask gang-0 [{workers 4}]"},
		"those beyond a free node":   {[]resource.Name{gpu}, []capacity.Node{nodeOf("cpu", 8, 0), nodeOf("gpu", 8, 3)}, []workload.PodSet{head, workers}, "ask gang-0 [{workers 1}]"},
		"all pods":                   {nil, []capacity.Node{nodeOf("cpu", 1, 0)}, []workload.PodSet{head, workers}, "ask gang-0 [{head 1} {workers 4}]"},
		"not of what is not managed": {[]resource.Name{"google.com/tpu"}, []capacity.Node{nodeOf("cpu", 8, 0)}, []workload.PodSet{head, workers}, ""},
		"nothing when it fits":       {[]resource.Name{gpu}, []capacity.Node{nodeOf("cpu", 8, 0), nodeOf("gpu", 8, 4)}, []workload.PodSet{head, workers}, "admit gang-0"},
		"a set that stays together is asked for whole": {[]resource.Name{gpu}, []capacity.Node{nodeOf("gpu", 8, 3)}, []workload.PodSet{func() workload.PodSet {
			set := setOf("workers", 4, 1, 1)
			set.Topology = &workload.Topology{Level: "kubernetes.io/hostname", Mode: "required"}
			return set
		}()}, "ask gang-0 [{workers 4}]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := askingState(t, askingConfig(100, test.managed...), test.nodes...)
			enqueue(s, 0, "queue", test.sets)
			wantPlan(t, decide(s), test.want)
		})
	}
}

func TestAGangIsAdmittedOnceItsNodesAreThere(t *testing.T) {
	t.Parallel()
	s := askingState(t, askingConfig(100), nodeOf("a", 8, 0))
	enqueue(s, 0, "queue", []workload.PodSet{setOf("workers", 2, 1, 1)})
	wantPlan(t, decide(s), "ask gang-0 [{workers 2}]")

	s.SetNode(nodeOf("new", 8, 2))
	wantPlan(t, decide(s), "") // the nodes are there, and the answer is not

	s.Provisioned("gang-0", start)
	wantPlan(t, decide(s), "admit gang-0")
	if waiting, started := s.Counts(); waiting != 0 || started != 1 {
		t.Errorf("%d wait and %d have started, want 0 and 1", waiting, started)
	}
	s.Release("gang-0")
	enqueue(s, 1, "queue", []workload.PodSet{setOf("workers", 100, 1, 1)})
	wantPlan(t, decide(s), "ask gang-1 [{workers 98}]") // all of the quota is free again
}

func TestTheExactFitDecidesNotTheAnswer(t *testing.T) {
	t.Parallel()
	s := askingState(t, askingConfig(100), nodeOf("a", 8, 0))
	enqueue(s, 0, "queue", []workload.PodSet{setOf("workers", 2, 1, 2)})
	decide(s)
	s.SetNode(nodeOf("new", 8, 1)) // another node than was asked for
	s.Provisioned("gang-0", start)
	p := decide(s)
	wantPlan(t, p, "")
	if len(p.Waits) != 1 || !strings.Contains(p.Waits[0].Reason.Message, "do not hold all pods") {
		t.Errorf("the gang waits with %+v, want what the nodes lack", p.Waits)
	}
	s.SetNode(nodeOf("new-2", 8, 4))
	wantPlan(t, decide(s), "admit gang-0")
}

// A search that is put off is repeated when the queue may search again, without any event.
func TestASearchOnProvisionedNodesIsRepeated(t *testing.T) {
	t.Parallel()
	s := askingState(t, askingConfig(100), nodeOf("a", 8, 0))
	set := setOf("workers", 2, 1, 1)
	set.Template.Spread = []workload.Spread{{TopologyKey: "kubernetes.io/hostname", MaxSkew: 1}} // only a search finds places
	enqueue(s, 0, "queue", []workload.PodSet{set})
	wantPlan(t, decide(s), "ask gang-0 [{workers 2}]")
	s.Provisioned("gang-0", start)
	now := start.Add(time.Minute)
	admission.UseUp(s, "queue", now)
	for _, name := range []string{"first", "second"} {
		s.SetNode(nodeOf(name, 8, 1))
	}
	plan := admission.Decide(s, now)
	wantPlan(t, plan, "")
	if len(plan.Waits) != 1 || !strings.Contains(plan.Waits[0].Reason.Message, "undecided") {
		t.Errorf("it waits because of %+v", plan.Waits)
	}
	if !plan.NextAt.After(now) || plan.NextAt.After(now.Add(10*time.Second)) {
		t.Fatalf("the next decision is at %s, want one within seconds of %s", plan.NextAt, now)
	}
	wantPlan(t, admission.Decide(s, plan.NextAt), "admit gang-0")
}

func TestAnOpenRequestHoldsQuota(t *testing.T) {
	t.Parallel()
	s := askingState(t, askingConfig(3), nodeOf("a", 8, 0))
	enqueue(s, 0, "queue", []workload.PodSet{setOf("workers", 2, 1, 1)})
	enqueue(s, 1, "queue", []workload.PodSet{setOf("workers", 2, 1, 1)})
	enqueue(s, 2, "queue", []workload.PodSet{setOf("workers", 1, 1, 1)})
	wantPlan(t, decide(s), "ask gang-0 [{workers 2}], ask gang-2 [{workers 1}]")
	if why := s.Reason("gang-1"); why.Kind != workload.ReasonQuota {
		t.Errorf("gang-1 waits for %+v, want quota", why)
	}
	s.Dequeue("gang-0") // cancelled: its quota is free
	wantPlan(t, decide(s), "ask gang-1 [{workers 2}]")
}

func TestARequestOutlivesLeaderAndConfiguration(t *testing.T) {
	t.Parallel()
	c := askingConfig(2)
	s := askingState(t, c, nodeOf("a", 8, 0))
	flavors := []workload.PodSetFlavors{{PodSet: "workers", Flavors: map[resource.Name]string{"cpu": "default", "nvidia.com/gpu": "default"}}}
	s.Enqueue(admission.Waiting{ // as the next leader does
		Workload: &workload.Workload{ID: "gang-0", Queue: "queue", PodSets: []workload.PodSet{setOf("workers", 2, 1, 1)}},
		Asked:    &admission.Asked{Cluster: "c", Flavors: flavors}, Reported: true,
	})
	enqueue(s, 1, "queue", []workload.PodSet{setOf("workers", 1, 1, 1)})
	wantPlan(t, decide(s), "") // its quota is held again

	s.Reconfigure(treeOf(t, askingConfig(3)))
	wantPlan(t, decide(s), "ask gang-1 [{workers 1}]")

	s.SetNode(nodeOf("new", 8, 2))
	s.Provisioned("gang-0", start)
	wantPlan(t, decide(s), "admit gang-0")
}

func TestAHeldQueueAdmitsNothingOnProvisionedNodes(t *testing.T) {
	t.Parallel()
	c := askingConfig(2)
	s := askingState(t, c, nodeOf("a", 8, 0))
	enqueue(s, 0, "queue", []workload.PodSet{setOf("workers", 2, 1, 1)})
	decide(s)
	held := askingConfig(2)
	held.ClusterQueues[0].StopPolicy = quota.Hold
	s.Reconfigure(treeOf(t, held))
	s.SetNode(nodeOf("new", 8, 2))
	s.Provisioned("gang-0", start)
	wantPlan(t, decide(s), "")
	s.Reconfigure(treeOf(t, c))
	wantPlan(t, decide(s), "admit gang-0")
}

// A question about a state must not change it, nor what its requests hold.
func TestQuestionsSeeWhatRequestsHold(t *testing.T) {
	t.Parallel()
	s := askingState(t, askingConfig(2), nodeOf("a", 8, 0))
	enqueue(s, 0, "queue", []workload.PodSet{setOf("workers", 2, 1, 1)})
	enqueue(s, 1, "queue", []workload.PodSet{setOf("workers", 1, 1, 1)})
	decide(s)
	for _, id := range []workload.ID{"gang-0", "gang-1"} {
		if _, waits := admission.Explain(s, id, start.Add(time.Second)); !waits {
			t.Errorf("%s does not wait", id)
		}
	}
	wantPlan(t, admission.Decide(s, start.Add(time.Minute)), "")
	if why := s.Reason("gang-1"); why.Kind != workload.ReasonQuota {
		t.Errorf("gang-1 waits for %+v, want quota", why)
	}
}

// Nodes are asked for in a cluster that has none at all: its last one went away, or it has only
// said that it is there.
func TestAGangAsksInAClusterWithoutNodes(t *testing.T) {
	t.Parallel()
	for name, empty := range map[string]func(*admission.State){
		"its last node went away": func(s *admission.State) {
			s.SetNode(nodeOf("a", 8, 1))
			s.SetCluster("c")
			s.RemoveNode(admission.NodeKey{Cluster: "c", Name: "a"})
		},
		"it has reported none": func(s *admission.State) { s.SetCluster("c") },
	} {
		for _, home := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, home %t", name, home), func(t *testing.T) {
				t.Parallel()
				s := askingState(t, askingConfig(100))
				sets := []workload.PodSet{setOf("workers", 2, 1, 1)}
				if home {
					enqueueAt(s, "c", "gang-0", 0, sets)
				} else {
					enqueue(s, 0, "queue", sets)
				}
				wantPlan(t, decide(s), "") // no cluster is known
				s.SetExtra(admission.NodeKey{Cluster: "c", Name: "a"}, resource.List{"cpu": 1})
				wantPlan(t, decide(s), "") // its nodes are not
				empty(s)
				p := decide(s)
				wantPlan(t, p, "ask gang-0 [{workers 2}]")
				if len(p.Asks) != 1 || p.Asks[0].Cluster != "c" {
					t.Fatalf("asked is for %+v, want nodes in c", p.Asks)
				}
				s.Provisioned("gang-0", start)
				wantPlan(t, decide(s), "")
				s.SetNode(nodeOf("new", 8, 2))
				wantPlan(t, decide(s), "admit gang-0")
			})
		}
	}
}

// A cluster with nodes is asked before one without, and a gang whose cluster has none says so.
func TestAnEmptyClusterIsAskedLast(t *testing.T) {
	t.Parallel()
	sets := []workload.PodSet{setOf("workers", 2, 1, 1)}
	s := askingState(t, askingConfig(100), nodeIn("d", "a", 1))
	s.SetCluster("c")
	enqueue(s, 0, "queue", sets)
	p := decide(s)
	wantPlan(t, p, "ask gang-0 [{workers 1}]")
	if len(p.Asks) != 1 || p.Asks[0].Cluster != "d" {
		t.Errorf("asked is for %+v, want nodes in d", p.Asks)
	}
	s = stateOf(nil)
	s.SetCluster("c")
	enqueue(s, 0, "queue", sets)
	enqueueAt(s, "c", "home", 1, sets)
	decide(s)
	for id, want := range map[workload.ID]string{"gang-0": "no cluster has a node now", "home": `cluster "c", where the object is, has no node now`} {
		if why := s.Reason(id); why.Kind != workload.ReasonNoNodes || why.Message != want {
			t.Errorf("%s waits for %+v, want %q", id, why, want)
		}
	}
}

// Of two gangs that ask, only the first counts on a place that is free.
func TestTwoGangsDoNotCountOnOneFreePlace(t *testing.T) {
	t.Parallel()
	s := askingState(t, askingConfig(100), nodeOf("a", 8, 1))
	for i := range 2 {
		enqueue(s, i, "queue", []workload.PodSet{setOf("workers", 2, 1, 1)})
	}
	wantPlan(t, decide(s), "ask gang-0 [{workers 1}], ask gang-1 [{workers 2}]")
	s.Dequeue("gang-0")
	enqueue(s, 2, "queue", []workload.PodSet{setOf("workers", 3, 1, 1)})
	wantPlan(t, decide(s), "ask gang-2 [{workers 2}]")
	s.SetNode(nodeOf("b", 8, 2)) // of gang-1
	s.Provisioned("gang-1", start)
	wantPlan(t, decide(s), "admit gang-1")
}
