package admission_test

import (
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// bare returns a gang of a pod with one container that asks no memory.
func bare(id workload.ID, namespace string) *workload.Workload {
	set := setOf("workers", 1, 1, 0)
	set.Template.Unset = workload.Unset{resource.Memory: {{Times: 1}}}
	return &workload.Workload{ID: id, Queue: "queue", Namespace: namespace, PodSets: []workload.PodSet{set}}
}

// addNode adds a node with so much memory.
func addNode(s *admission.State, cluster string, gib int64) {
	n := nodeIn(cluster, "node", 4)
	n.Allocatable = n.Allocatable.Plus(resource.List{"memory": gib << 30})
	s.SetNode(n)
}

func defaulting(gib int64) admission.Namespace {
	return admission.Namespace{Defaults: resource.List{"memory": gib << 30}}
}

// TestAGangAsksForTheDefaultsOfItsNamespace: it is admitted only where they fit, with pod
// sets that say so, and the caller's workload stays as it is. Another default counts at once.
func TestAGangAsksForTheDefaultsOfItsNamespace(t *testing.T) {
	t.Parallel()
	s := admission.NewState(nil)
	addNode(s, "c", 4)
	s.SetNamespace("c", "limited", defaulting(5))
	w := bare("gang", "limited")
	s.Enqueue(admission.Waiting{Workload: w})
	if plan := decide(s); len(plan.Admissions) > 0 || reasonOf(plan, "gang") == "" {
		t.Fatalf("with a default of 5 GiB and a node of 4 GiB the plan is %+v", plan)
	}
	s.SetNamespace("c", "limited", defaulting(3))
	plan := decide(s)
	if len(plan.Admissions) != 1 || len(plan.Admissions[0].PodSets) != 1 {
		t.Fatalf("with a default of 3 GiB the plan is %+v", plan)
	}
	if got := plan.Admissions[0].PodSets[0].Template.Requests["memory"]; got != 3<<30 {
		t.Errorf("its pod has %d bytes, want 3 GiB", got)
	}
	if got := w.PodSets[0].Template.Requests["memory"]; got != 0 {
		t.Errorf("the caller's workload asks for %d bytes now", got)
	}
	s.Enqueue(admission.Waiting{Workload: bare("next", "limited"), Order: 1})
	if plan := decide(s); len(plan.Admissions) > 0 {
		t.Errorf("beside it 1 GiB is free, and the plan is %+v", plan)
	}
	s.Enqueue(admission.Waiting{Workload: bare("other", "without"), Order: 2})
	if plan := decide(s); len(plan.Admissions) != 1 || plan.Admissions[0].Workload != "other" || plan.Admissions[0].PodSets != nil {
		t.Errorf("a namespace without defaults: %+v", plan)
	}
}

// TestDefaultsCountTowardsQuota: what pods ask for by default is charged.
func TestDefaultsCountTowardsQuota(t *testing.T) {
	t.Parallel()
	s := admission.NewState(treeOf(t, quota.Config{Flavors: []quota.Flavor{{Name: "f"}}, ClusterQueues: []quota.ClusterQueue{{
		Name: "queue", QuotaCheckStrategy: quota.IgnoreUndeclared,
		ResourceGroups: []quota.ResourceGroup{{CoveredResources: []resource.Name{"memory"}, Flavors: []quota.FlavorQuotas{{
			Name: "f", Resources: []quota.ResourceQuota{{Name: "memory", Nominal: 2 << 30}},
		}}}},
	}}}))
	addNode(s, "c", 64)
	s.SetNamespace("c", "limited", defaulting(2))
	for i, id := range []workload.ID{"first", "second"} {
		s.Enqueue(admission.Waiting{Workload: bare(id, "limited"), Order: int64(i)})
	}
	plan := decide(s)
	if len(plan.Admissions) != 1 || s.Quota().Queue("queue").Used()["memory"] != 2<<30 {
		t.Errorf("the plan is %+v, and %v is used", plan, s.Quota().Queue("queue").Used())
	}
	if why := s.Reason("second"); why == nil || why.Kind != workload.ReasonQuota {
		t.Errorf("the second waits because %+v", why)
	}
}

// TestTheLargestDefaultOfAllClustersCounts: but for a workload that has its cluster, that of
// the others does not.
func TestTheLargestDefaultOfAllClustersCounts(t *testing.T) {
	t.Parallel()
	s := admission.NewState(nil)
	for _, cluster := range []string{"east", "west"} {
		addNode(s, cluster, 8)
	}
	s.SetNamespace("east", "limited", defaulting(1))
	s.SetNamespace("west", "limited", defaulting(3))
	s.Enqueue(admission.Waiting{Workload: bare("anywhere", "limited")})
	plan := decide(s)
	if len(plan.Admissions) != 1 || plan.Admissions[0].PodSets[0].Template.Requests["memory"] != 3<<30 {
		t.Errorf("the plan is %+v", plan)
	}
	home := bare("home", "limited")
	home.Submitter = "kubernetes/east/user"
	s.Enqueue(admission.Waiting{Workload: home, Order: 1})
	plan = decide(s)
	if len(plan.Admissions) != 1 || plan.Admissions[0].PodSets[0].Template.Requests["memory"] != 1<<30 {
		t.Errorf("the plan is %+v", plan)
	}
	s.RemoveNamespace("west", "limited")
	s.Enqueue(admission.Waiting{Workload: bare("later", "limited"), Order: 2})
	plan = decide(s)
	if len(plan.Admissions) != 1 || plan.Admissions[0].PodSets[0].Template.Requests["memory"] != 1<<30 {
		t.Errorf("without the namespace in the west the plan is %+v", plan)
	}
}

// TestDefaultsOfAClusterThatHasLeftDoNotCount: also for a workload that waits already.
func TestDefaultsOfAClusterThatHasLeftDoNotCount(t *testing.T) {
	t.Parallel()
	s := admission.NewState(nil)
	addNode(s, "east", 2)
	s.SetNamespace("east", "limited", defaulting(1))
	s.SetNamespace("west", "limited", defaulting(3))
	s.Enqueue(admission.Waiting{Workload: bare("gang", "limited")})
	if plan := decide(s); len(plan.Admissions) > 0 {
		t.Fatalf("with a default of 3 GiB in the west and a node of 2 GiB the plan is %+v", plan)
	}
	t0 := time.Unix(1_000_000, 0).UTC()
	s.Reconfigure(treeOf(t, quota.Config{ClusterCordons: []quota.ClusterCordon{{Name: "west", Since: t0, By: "ann", Drain: true, Left: true}}}))
	plan := decide(s)
	if len(plan.Admissions) != 1 || plan.Admissions[0].PodSets[0].Template.Requests["memory"] != 1<<30 {
		t.Errorf("after the west has left the plan is %+v", plan)
	}
}
