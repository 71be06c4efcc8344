package admission_test

import (
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// What a LimitRange keeps out of all clusters with nodes waits for no LimitRange any more when a
// cluster comes where nodes can be asked for, or that serves its kind.
func TestAHeldGangIsLetGoWhenAnotherClusterMayTakeIt(t *testing.T) {
	t.Parallel()
	gang := gpuGang("gang", "ns", 3)
	gang.Kind, gang.PodSets[0].Kinds = workload.KindAppWrapper, []workload.ObjectKind{pyTorchJob}
	for name, c := range map[string]struct {
		before, event func(*admission.State)
		admitted      bool
	}{
		"one without nodes": {func(*admission.State) {}, func(s *admission.State) { s.SetCluster("d") }, false},
		"one that serves its kind now": {func(s *admission.State) {
			s.SetNode(nodeIn("d", "node", 4))
			s.SetServed("d", []workload.ObjectKind{"v1 Service"})
		}, func(s *admission.State) { s.SetServed("d", []workload.ObjectKind{"v1 Service", pyTorchJob}) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := admission.NewState(nil)
			s.SetNode(nodeIn("c", "node", 4))
			s.SetNamespace("c", "ns", upTo(2))
			c.before(s)
			own := *gang
			s.Enqueue(admission.Waiting{Workload: &own})
			if got := reasonOf(decide(s), "gang"); !strings.HasPrefix(got, "Held") {
				t.Fatalf("it waits because %s", got)
			}
			c.event(s)
			if !s.Pending(start) {
				t.Error("no decision is due")
			}
			plan := decide(s)
			if got := admitted(plan); (got["gang"] == "d") != c.admitted {
				t.Errorf("admitted are %v", got)
			}
			if got := reasonOf(plan, "gang"); strings.HasPrefix(got, "Held") || (got == "") != c.admitted {
				t.Errorf("it waits because %q", got)
			}
		})
	}
}

// While an asker is held others get its quota. When it is let go it asks again, and holds no more
// than its queue may use.
func TestAnAskerThatIsLetGoFindsItsQuotaTaken(t *testing.T) {
	t.Parallel()
	labelled := func(team string) admission.Namespace {
		return admission.Namespace{Labels: map[string]string{"team": team}}
	}
	for name, c := range map[string]struct {
		selector          *quota.LabelSelector
		allowing, holding admission.Namespace
	}{
		"a LimitRange": {nil, upTo(4), upTo(2)},
		"a selector":   {&quota.LabelSelector{MatchLabels: map[string]string{"team": "red"}}, labelled("red"), labelled("blue")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := admission.NewState(treeOf(t, quota.Config{Flavors: []quota.Flavor{{Name: "f"}}, ClusterQueues: []quota.ClusterQueue{{
				Name: "queue", QuotaCheckStrategy: quota.IgnoreUndeclared, NamespaceSelector: c.selector,
				ResourceGroups: []quota.ResourceGroup{{CoveredResources: []resource.Name{"nvidia.com/gpu"}, Flavors: []quota.FlavorQuotas{{
					Name: "f", Resources: []quota.ResourceQuota{{Name: "nvidia.com/gpu", Nominal: 4}},
				}}}},
			}}}))
			s.SetNode(nodeIn("c", "node", 4))
			s.SetNamespace("c", "asker", c.allowing)
			s.SetNamespace("c", "other", admission.Namespace{Labels: map[string]string{"team": "red"}})
			used := func() int64 { return s.Quota().Queue("queue").Used()["nvidia.com/gpu"] }
			s.Enqueue(admission.Waiting{Workload: gpuGang("asker", "asker", 4), Asked: &admission.Asked{
				Cluster: "c", Flavors: []workload.PodSetFlavors{{PodSet: "workers", Flavors: map[resource.Name]string{"nvidia.com/gpu": "f"}}},
			}})
			enqueueGPUs(s, "other", "other", 1, 4)
			if plan := decide(s); len(plan.Admissions) > 0 || used() != 4 {
				t.Fatalf("admitted are %v, and %d are used", admitted(plan), used())
			}
			s.SetNamespace("c", "asker", c.holding)
			if got := admitted(decide(s)); got["other"] != "c" || used() != 4 {
				t.Fatalf("while the asker is held admitted are %v, and %d are used", got, used())
			}
			s.SetNamespace("c", "asker", c.allowing)
			plan := decide(s)
			if len(plan.Withdrawals) != 1 || !strings.Contains(plan.Withdrawals[0].Reason.Message, "it was held, and others have its quota now, so what it waited for is withdrawn: ") {
				t.Errorf("the withdrawals are %+v", plan.Withdrawals)
			}
			if used() != 4 {
				t.Errorf("%d of 4 are used", used())
			}
		})
	}
}

// Victims of a gang that its cluster would refuse now are not waited for, and what was reserved
// for it is free.
func TestANominationEndsWithALimitRange(t *testing.T) {
	t.Parallel()
	s := admission.NewState(treeOf(t, nominationPolicy(t)))
	s.SetNode(nodeOf("one", 8, 4))
	old := gpuGang("old", "ns", 4)
	old.Queue = "a"
	s.Start(admission.Started{
		Workload: old, Cluster: "c", Terminating: true, Admitted: start, Placements: []workload.Placement{{PodSet: "workers", Node: "one", Pods: 1}},
	})
	for i, namespace := range []string{"bounded", "free"} {
		w := gpuGang(workload.ID(namespace), namespace, 4)
		w.Queue, w.Priority = "a", int32(5-i)
		s.Enqueue(admission.Waiting{Order: int64(1 + i), Workload: w, Nominated: i == 0})
	}
	if decide(s); s.Reason("bounded").Kind != workload.ReasonWaitingForEviction {
		t.Fatalf("it waits because %+v", s.Reason("bounded"))
	}
	s.SetNamespace("c", "bounded", upTo(2))
	if got := reasonOf(admission.Decide(s, start.Add(time.Second)), "bounded"); !strings.HasPrefix(got, "Held") {
		t.Errorf("it waits because %s", got)
	}
	s.Release("old")
	if got := admitted(admission.Decide(s, start.Add(2*time.Second))); got["free"] != "c" {
		t.Errorf("admitted are %v", got)
	}
}

// A gang that grows has pods like those that it asks for.
func TestGrowthIsNotComparedWithLimitRanges(t *testing.T) {
	t.Parallel()
	s := admission.NewState(nil)
	s.SetNode(nodeIn("c", "node", 8))
	enqueueGPUs(s, "gang", "ns", 0, 3)
	decide(s)
	s.SetNamespace("c", "ns", upTo(2))
	s.Grow(admission.Growth{Workload: "gang", PodSets: gpuGang("gang", "ns", 3).PodSets})
	if plan := decide(s); len(plan.Growths) != 1 {
		t.Errorf("the plan is %+v", plan)
	}
}

// An explanation in another goroutine, and a state with another configuration, know the
// LimitRanges, too.
func TestASnapshotHasTheLimitRanges(t *testing.T) {
	t.Parallel()
	s := admission.NewState(nil)
	s.SetNode(nodeIn("c", "node", 4))
	s.SetNamespace("c", "ns", upTo(2))
	enqueueGPUs(s, "gang", "ns", 0, 3)
	decide(s)
	var whole *admission.Snapshot
	for b := s.BeginSnapshot(100); whole == nil; {
		_, whole = b.Next(100)
	}
	s.Reconfigure(treeOf(t, s.Quota().Config()))
	if why := s.HeldReason(gpuGang("x", "ns", 3)); why == nil {
		t.Error("after a configuration it is not held")
	}
	s.SetNamespace("c", "ns", upTo(3))
	if got := admitted(decide(s)); got["gang"] != "c" {
		t.Errorf("admitted are %v", got)
	}
	copied, err := whole.State()
	if err != nil {
		t.Fatal(err)
	}
	if why := copied.HeldReason(gpuGang("x", "ns", 3)); why == nil || !strings.Contains(why.Message, beyondTwo) {
		t.Errorf("in the snapshot it is held by %+v", why)
	}
}
