package admission_test

import (
	"fmt"
	"strings"
	"testing"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
)

// wraps returns a state with nodes and a workload that needs a kind and fits.
func wraps(nodes []capacity.Node, kind workload.ObjectKind) *admission.State {
	set := setOf("w", 1, 1, 1)
	set.Kinds = []workload.ObjectKind{"v1 Service", kind}
	s := stateOf(nodes)
	s.Enqueue(admission.Waiting{Workload: &workload.Workload{ID: "gang-0", Kind: workload.KindAppWrapper, Queue: "queue", PodSets: []workload.PodSet{set}}})
	return s
}

const pyTorchJob = workload.ObjectKind("kubeflow.org/v1 PyTorchJob")

// A gang of a kind that no cluster serves waits with that reason; it starts when the kind is
// installed. Clusters of which it is unknown serve every kind.
func TestAKindThatNoClusterServes(t *testing.T) {
	t.Parallel()
	other := nodeOf("other", 8, 4)
	other.Cluster = "d"
	served := []workload.ObjectKind{"v1 Service"}
	for name, c := range map[string]struct {
		nodes  []capacity.Node
		served map[string][]workload.ObjectKind
		want   string // the cluster where it starts; empty: it never fits
	}{
		"unknown":                      {[]capacity.Node{nodeOf("one", 8, 4)}, nil, "c"},
		"not served":                   {[]capacity.Node{nodeOf("one", 8, 4)}, map[string][]workload.ObjectKind{"c": served}, ""},
		"served":                       {[]capacity.Node{nodeOf("one", 8, 4)}, map[string][]workload.ObjectKind{"c": append(served, pyTorchJob)}, "c"},
		"its API does not answer":      {[]capacity.Node{nodeOf("one", 8, 4)}, map[string][]workload.ObjectKind{"c": append(served, pyTorchJob.Any())}, "c"},
		"another version":              {[]capacity.Node{nodeOf("one", 8, 4)}, map[string][]workload.ObjectKind{"c": append(served, "kubeflow.org/v2 PyTorchJob")}, ""},
		"one of two clusters":          {[]capacity.Node{nodeOf("one", 8, 4), other}, map[string][]workload.ObjectKind{"c": served, "d": append(served, pyTorchJob)}, "d"},
		"the other one is unknown":     {[]capacity.Node{nodeOf("one", 8, 4), other}, map[string][]workload.ObjectKind{"c": served}, "d"},
		"neither":                      {[]capacity.Node{nodeOf("one", 8, 4), other}, map[string][]workload.ObjectKind{"c": served, "d": served}, ""},
		"only a cluster without nodes": {[]capacity.Node{nodeOf("one", 8, 4)}, map[string][]workload.ObjectKind{"c": served, "d": append(served, pyTorchJob)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := wraps(c.nodes, pyTorchJob)
			for cluster, kinds := range c.served {
				s.SetServed(cluster, kinds)
			}
			plan := decide(s)
			if c.want != "" {
				if len(plan.Admissions) != 1 || plan.Admissions[0].Cluster != c.want {
					t.Fatalf("the plan is %+v, want a start in cluster %s", plan, c.want)
				}
				return
			}
			const text = "no cluster serves the kind PyTorchJob of kubeflow.org/v1; it waits until the definition of the kind is installed"
			if len(plan.Admissions) != 0 || len(plan.Waits) != 1 || plan.Waits[0].Reason.Kind != workload.ReasonNeverFits || plan.Waits[0].Reason.Message != text {
				t.Fatalf("the plan is %+v, want the reason %q", plan, text)
			}
			if explained, _ := admission.Explain(s, "gang-0", start); explained.Reason.Message != text || len(explained.Changes) != 0 {
				t.Errorf("it is explained by %+v", explained)
			}
			s.SetServed("c", append(served, pyTorchJob))
			if !s.Pending(start) {
				t.Fatal("the kind is installed, and no decision is due")
			}
			if plan := decide(s); len(plan.Admissions) != 1 || plan.Admissions[0].Cluster != "c" {
				t.Errorf("the kind is installed, and the plan is %+v", plan)
			}
		})
	}
}

// What is stored of all equal gangs follows when a kind is served, or no longer: each reason is
// reported again, not that of the first one alone. A next term does the same, of which only
// whether the reported reason says never is known.
func TestReasonsOfAllEqualGangsFollowTheKinds(t *testing.T) {
	t.Parallel()
	const gangs = 4
	served, without := []workload.ObjectKind{"v1 Service", pyTorchJob}, []workload.ObjectKind{"v1 Service"}
	enqueue := func(s *admission.State, reported, never bool) {
		for i := range gangs {
			set := setOf("w", 1, 1, 1)
			set.Kinds = []workload.ObjectKind{pyTorchJob}
			s.Enqueue(admission.Waiting{Order: int64(i), Reported: reported, Never: never, Workload: &workload.Workload{
				ID: workload.ID(fmt.Sprintf("gang-%d", i)), Kind: workload.KindAppWrapper, Queue: "queue", PodSets: []workload.PodSet{set},
			}})
		}
	}
	want := func(t *testing.T, s *admission.State, waits int, never bool) {
		t.Helper()
		plan := decide(s)
		if len(plan.Waits) != waits {
			t.Fatalf("%d reasons are reported, want %d: %+v", len(plan.Waits), waits, plan.Waits)
		}
		for _, w := range plan.Waits {
			if is := len(w.Reason.Kinds) > 0; is != never {
				t.Errorf("%s waits because of %+v", w.Workload, w.Reason)
			}
		}
	}
	t.Run("in a term", func(t *testing.T) {
		t.Parallel()
		s := stateOf([]capacity.Node{nodeOf("one", 8, 1)}) // room for one of them
		enqueue(s, false, false)
		s.SetServed("c", without)
		want(t, s, gangs, true)
		want(t, s, 0, true)
		s.SetServed("c", served)
		want(t, s, gangs-1, false)
		s.SetServed("c", without)
		want(t, s, gangs-1, true)
	})
	for name, c := range map[string]struct {
		never bool
		now   []workload.ObjectKind
		waits int
	}{
		"installed between two terms": {true, served, gangs - 1}, "removed between two terms": {false, without, gangs},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stateOf([]capacity.Node{nodeOf("one", 8, 1)})
			enqueue(s, true, c.never)
			s.SetServed("c", c.now)
			want(t, s, c.waits, !c.never)
		})
	}
}

// A kind that nothing waiting has is no cause for a decision.
func TestAnotherKindIsNoCauseForADecision(t *testing.T) {
	t.Parallel()
	s := wraps([]capacity.Node{nodeOf("one", 8, 4)}, pyTorchJob)
	s.SetServed("c", []workload.ObjectKind{"v1 Service"})
	decide(s)
	s.SetServed("c", []workload.ObjectKind{"v1 Service", "example.org/v1 Other"})
	if s.Pending(start) {
		t.Error("a decision is due")
	}
}

// Gangs with equal pods are told apart by their kinds, and a Ray object needs its own.
func TestKindsOfEqualPods(t *testing.T) {
	t.Parallel()
	s := stateOf([]capacity.Node{nodeOf("one", 8, 4)})
	for _, kind := range []string{workload.KindRayCluster, workload.KindRayJob} {
		s.Enqueue(admission.Waiting{Workload: &workload.Workload{ID: workload.ID(kind), Kind: kind, Queue: "queue", PodSets: []workload.PodSet{setOf("w", 1, 1, 1)}}})
	}
	s.SetServed("c", []workload.ObjectKind{"ray.io/v1 RayJob"})
	plan := decide(s)
	if len(plan.Admissions) != 1 || plan.Admissions[0].Workload != workload.KindRayJob {
		t.Errorf("the plan is %+v, want a start of the RayJob alone", plan)
	}
	if why := s.Reason(workload.KindRayCluster); why == nil || !strings.Contains(why.Message, "the kind RayCluster of ray.io/v1") {
		t.Errorf("the RayCluster waits because of %+v", why)
	}
}

// A gang asks for nodes in the cluster that serves its kind, although another one has nodes.
func TestNodesAreAskedForWhereTheKindIsServed(t *testing.T) {
	t.Parallel()
	s := askingState(t, askingConfig(100), nodeOf("one", 8, 4))
	s.SetServed("c", []workload.ObjectKind{"v1 Service"})
	s.SetCluster("d")
	s.SetServed("d", []workload.ObjectKind{"v1 Service", pyTorchJob})
	set := setOf("w", 1, 1, 1)
	set.Kinds = []workload.ObjectKind{pyTorchJob}
	s.Enqueue(admission.Waiting{Workload: &workload.Workload{ID: "gang-0", Kind: workload.KindAppWrapper, Queue: "queue", PodSets: []workload.PodSet{set}}})
	if p := decide(s); len(p.Asks) != 1 || p.Asks[0].Cluster != "d" {
		t.Errorf("the plan is %+v, want nodes asked for in d", p)
	}
}
