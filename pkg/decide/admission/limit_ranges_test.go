package admission_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// upTo is a namespace whose containers may have a limit of that number of GPUs.
func upTo(gpus int64) admission.Namespace {
	return admission.Namespace{Ranges: []workload.LimitRange{{Name: "limits", Items: []workload.LimitItem{{Max: resource.List{"nvidia.com/gpu": gpus}}}}}}
}

// gpuGang is a gang of a pod with one container.
func gpuGang(id workload.ID, namespace string, gpus int64) *workload.Workload {
	set := setOf("workers", 1, 1, gpus)
	amounts := resource.List{"nvidia.com/gpu": gpus}
	set.Template.Asks = [][]workload.ContainerAsk{{{Name: "worker", Requests: amounts, Limits: amounts}}}
	return &workload.Workload{ID: id, Queue: "queue", Namespace: namespace, PodSets: []workload.PodSet{set}}
}

func enqueueGPUs(s *admission.State, id workload.ID, namespace string, order, gpus int64) {
	s.Enqueue(admission.Waiting{Order: order, Workload: gpuGang(id, namespace, gpus)})
}

const beyondTwo = `container "worker" of pod set "workers" has a limit of nvidia.com/gpu 3, and LimitRange "limits" allows a container 2 at most`

// The API server would refuse its pods, so the gang waits with that reason and others pass, also
// where none may pass the head. Another LimitRange counts at once; what runs stays.
func TestAGangBeyondItsLimitRangeIsHeld(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{quota.StrictFIFO, quota.BestEffortFIFO, quota.Backfill} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			s := admission.NewState(treeOf(t, quota.Config{ClusterQueues: []quota.ClusterQueue{{Name: "queue", Strategy: strategy}}}))
			s.SetNode(nodeIn("c", "node", 4))
			s.SetNamespace("c", "ns", upTo(2))
			enqueueGPUs(s, "large", "ns", 0, 3)
			enqueueGPUs(s, "small", "ns", 1, 1)
			plan := decide(s)
			if got := admitted(plan); len(got) != 1 || got["small"] != "c" {
				t.Fatalf("admitted are %v", got)
			}
			if got, want := reasonOf(plan, "large"), `Held: namespace "ns" of cluster "c": `+beyondTwo+"; it waits until the LimitRange allows it"; got != want {
				t.Errorf("it waits because %s\nwant %s", got, want)
			}
			if _, why := admission.Certify(s, "large", func() bool { return false }); !strings.Contains(why, beyondTwo) {
				t.Errorf("it has no certificate because %s", why)
			}
			s.SetNamespace("c", "ns", upTo(3))
			if got := admitted(decide(s)); got["large"] != "c" {
				t.Fatalf("with a larger maximum admitted are %v", got)
			}
			s.SetNamespace("c", "ns", upTo(1))
			if plan := decide(s); len(plan.Evictions) > 0 {
				t.Errorf("with a smaller maximum evicted are %v", plan.Evictions)
			}
			s.Release("large")
			enqueueGPUs(s, "again", "ns", 2, 2)
			if got := reasonOf(decide(s), "again"); !strings.Contains(got, "allows a container 1 at most") {
				t.Errorf("it waits because %s", got)
			}
			s.RemoveNamespace("c", "ns")
			if got := admitted(decide(s)); got["again"] != "c" {
				t.Errorf("without the namespace admitted are %v", got)
			}
		})
	}
}

// A gang that one cluster would refuse goes to another one. While that has no room its reason
// has both, and it starts in the first as soon as its LimitRange is another.
func TestAGangGoesWhereItKeepsTheLimitRange(t *testing.T) {
	t.Parallel()
	s := admission.NewState(nil)
	for _, cluster := range []string{"east", "west"} {
		s.SetNode(nodeIn(cluster, "node", 4))
	}
	s.SetNamespace("east", "ns", upTo(2))
	enqueueGPUs(s, "first", "ns", 0, 3)
	if got := admitted(decide(s)); got["first"] != "west" {
		t.Fatalf("admitted are %v", got)
	}
	enqueueGPUs(s, "second", "ns", 1, 3)
	if got := reasonOf(decide(s), "second"); !strings.Contains(got, beyondTwo) || strings.HasPrefix(got, "Held") {
		t.Errorf("it waits because %s", got)
	}
	home := gpuGang("home", "ns", 3)
	home.Submitter = workload.ByKubernetes + "/east/ana"
	s.Enqueue(admission.Waiting{Order: 2, Workload: home})
	if got := reasonOf(decide(s), "home"); !strings.HasPrefix(got, "Held") {
		t.Errorf("with its object in the east it waits because %s", got)
	}
	s.SetNamespace("east", "ns", upTo(3))
	if got := admitted(decide(s)); len(got) != 1 || got["second"] != "east" {
		t.Errorf("with a larger maximum admitted are %v", got)
	}
}

// A cluster that does not take the workload for another reason does not keep it from being
// held, and its first node counts.
func TestOnlyClustersThatMayTakeAGangCount(t *testing.T) {
	t.Parallel()
	s := admission.NewState(treeOf(t, quota.Config{
		ClusterQueues: []quota.ClusterQueue{{Name: "queue"}}, Clusters: []quota.Cluster{{Name: "foreign", Queues: []string{"other"}}},
	}))
	s.SetNode(nodeIn("foreign", "node", 4))
	s.SetNode(nodeIn("c", "node", 4))
	s.SetNamespace("c", "ns", upTo(2))
	enqueueGPUs(s, "gang", "ns", 0, 3)
	if got := reasonOf(decide(s), "gang"); !strings.HasPrefix(got, `Held: namespace "ns" of cluster "c"`) {
		t.Errorf("it waits because %s", got)
	}
	s.SetNode(nodeIn("d", "node", 4))
	if got := admitted(decide(s)); got["gang"] != "d" {
		t.Errorf("with another cluster admitted are %v", got)
	}
}

// Gangs with equal pods share no verdict when a LimitRange of one namespace bounds them.
func TestNamespacesOfOneShapeAreJudgedApart(t *testing.T) {
	t.Parallel()
	s := admission.NewState(nil)
	for _, cluster := range []string{"east", "west"} {
		s.SetNode(nodeIn(cluster, "node", 3))
	}
	s.SetNamespace("east", "bounded", upTo(2))
	enqueueGPUs(s, "other", "bounded", 0, 3)
	if got := admitted(decide(s)); got["other"] != "west" {
		t.Fatalf("admitted are %v", got)
	}
	enqueueGPUs(s, "bounded", "bounded", 1, 3)
	enqueueGPUs(s, "free", "free", 2, 3)
	if got := admitted(decide(s)); len(got) != 1 || got["free"] != "east" {
		t.Errorf("admitted are %v", got)
	}
}

// The reason of a gang names its own namespace, also where another one with equal pods is kept out
// of the same cluster.
func TestAReasonNamesNoLimitRangeOfAnotherNamespace(t *testing.T) {
	t.Parallel()
	s := admission.NewState(nil)
	for _, cluster := range []string{"east", "west"} {
		s.SetNode(nodeIn(cluster, "node", 2))
	}
	names := map[workload.ID]string{"one": "of-one", "other": "of-other"}
	for _, id := range slices.Sorted(maps.Keys(names)) {
		n := upTo(2)
		n.Ranges[0].Name = names[id]
		s.SetNamespace("east", string(id), n)
		enqueueGPUs(s, id, string(id), 0, 3)
	}
	plan := decide(s)
	for id, own := range names {
		for namespace, limits := range names {
			why := reasonOf(plan, id)
			if got, want := strings.Contains(why, limits) || strings.Contains(why, fmt.Sprintf("namespace %q", namespace)), limits == own; got != want {
				t.Errorf("the reason of %s names %s of %s: %v, want %v: %s", id, limits, namespace, got, want, why)
			}
		}
	}
}

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

// Containers have other names in each job. Gangs that differ in nothing else share what searches
// for places have found.
func TestNamesOfContainersCostNoSearch(t *testing.T) {
	t.Parallel()
	s := admission.NewState(nil)
	s.SetNode(nodeIn("c", "node", 2))
	for i := range 10 {
		w := gpuGang(workload.ID(fmt.Sprint("gang-", i)), "ns", 3)
		w.PodSets[0].Template.Asks[0][0].Name = fmt.Sprint("worker-", i)
		s.Enqueue(admission.Waiting{Order: int64(i), Workload: w})
	}
	decide(s)
	if got := admission.Flavored(s); got != 1 {
		t.Errorf("%d searches are kept, want one", got)
	}
	s.SetNode(nodeIn("c", "node", 6))
	if got := admitted(decide(s)); len(got) != 2 {
		t.Errorf("with room for two admitted are %v", got)
	}
}

// A LimitRange changes no answer about another namespace.
func TestALimitRangeCostsItsOwnNamespaceAlone(t *testing.T) {
	t.Parallel()
	s := admission.NewState(nil)
	s.SetNode(nodeIn("c", "node", 4))
	for i, namespace := range []string{"a", "b"} {
		s.SetNamespace("c", namespace, upTo(2))
		enqueueGPUs(s, workload.ID(namespace), namespace, int64(i), 3)
	}
	decide(s)
	if got := admission.Judged(s); got != 2 {
		t.Fatalf("%d answers are kept, want 2", got)
	}
	s.SetNamespace("c", "b", upTo(3))
	if got := admission.Judged(s); got != 1 {
		t.Errorf("%d answers are kept, want that of the other namespace", got)
	}
	if got := admitted(decide(s)); len(got) != 1 || got["b"] != "c" {
		t.Errorf("admitted are %v", got)
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

// Gangs that ask for the same and differ in limits, or in a name, share no verdict either.
func TestGangsThatDifferInLimitsAreJudgedApart(t *testing.T) {
	t.Parallel()
	s := admission.NewState(nil)
	s.SetNode(nodeIn("c", "node", 4))
	s.SetNamespace("c", "ns", admission.Namespace{Ranges: []workload.LimitRange{{Name: "limits", Items: []workload.LimitItem{{Max: resource.List{"cpu": 3000}}}}}})
	for i, c := range []struct {
		name  string
		limit int64
	}{{"low", 2000}, {"high", 4000}, {"other", 4000}} {
		w := gpuGang(workload.ID(c.name), "ns", 1)
		w.PodSets[0].Template.Asks = [][]workload.ContainerAsk{{{Name: c.name, Requests: resource.List{"cpu": 1000}, Limits: resource.List{"cpu": c.limit}}}}
		s.Enqueue(admission.Waiting{Order: int64(i), Workload: w})
	}
	plan := decide(s)
	if got := admitted(plan); len(got) != 1 || got["low"] != "c" {
		t.Errorf("admitted are %v", got)
	}
	for _, id := range []workload.ID{"high", "other"} {
		if got := reasonOf(plan, id); !strings.Contains(got, fmt.Sprintf("container %q of pod set", id)) {
			t.Errorf("%s waits because %s", id, got)
		}
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

// TestLimitRangesDecideWhereGangsGo: whatever LimitRanges come and go, each decision admits a gang
// only where it keeps them, holds those that keep them nowhere, and leaves none waiting that has
// room where it keeps them.
func TestLimitRangesDecideWhereGangsGo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, now := admission.NewState(nil), start
		clusters, namespaces := []string{"east", "west"}, []string{"a", "b"}
		free, most := map[string]int64{}, map[string]int64{} // of GPUs, by cluster, and by cluster and namespace
		waiting, started := map[workload.ID]*workload.Workload{}, map[workload.ID]string{}
		gpus := func(w *workload.Workload) int64 { return w.PodSets[0].Template.Requests["nvidia.com/gpu"] }
		keeps := func(w *workload.Workload, cluster string) bool {
			bound, bounded := most[cluster+"/"+w.Namespace]
			return !bounded || gpus(w) <= bound
		}
		all := map[workload.ID]*workload.Workload{}
		for i := range rapid.IntRange(1, 25).Draw(t, "events") {
			cluster := rapid.SampledFrom(clusters).Draw(t, "cluster")
			namespace := rapid.SampledFrom(namespaces).Draw(t, "namespace")
			switch rapid.SampledFrom([]string{"gang", "gang", "bound", "bound", "unbound", "node", "end"}).Draw(t, "event") {
			case "gang":
				w := gpuGang(workload.ID(fmt.Sprint("gang-", i)), namespace, rapid.Int64Range(1, 4).Draw(t, "GPUs"))
				all[w.ID], waiting[w.ID] = w, w
				s.Enqueue(admission.Waiting{Order: int64(i), Workload: w})
			case "bound":
				bound := rapid.Int64Range(0, 4).Draw(t, "bound")
				most[cluster+"/"+namespace] = bound
				s.SetNamespace(cluster, namespace, upTo(bound))
			case "unbound":
				delete(most, cluster+"/"+namespace)
				s.RemoveNamespace(cluster, namespace)
			case "node":
				if _, there := free[cluster]; !there {
					free[cluster] = 6
					s.SetNode(nodeIn(cluster, "node", 6))
				}
			case "end":
				for _, id := range slices.Sorted(maps.Keys(started)) {
					free[started[id]] += gpus(all[id])
					delete(started, id)
					s.Release(id)
					break
				}
			}
			now = now.Add(time.Second)
			plan := admission.Decide(s, now)
			for _, a := range plan.Admissions {
				if !keeps(all[a.Workload], a.Cluster) {
					t.Fatalf("%s of namespace %s with %d GPUs is admitted in %s with bounds %v", a.Workload, all[a.Workload].Namespace, gpus(all[a.Workload]), a.Cluster, most)
				}
				free[a.Cluster] -= gpus(all[a.Workload])
				started[a.Workload] = a.Cluster
				delete(waiting, a.Workload)
			}
			if len(plan.Evictions) > 0 {
				t.Fatalf("evicted are %v", plan.Evictions)
			}
			for id, w := range waiting {
				held := len(free) > 0
				for cluster, left := range free {
					held = held && !keeps(w, cluster)
					if keeps(w, cluster) && gpus(w) <= left {
						t.Fatalf("%s of namespace %s with %d GPUs waits because %+v, with %d free in %s and bounds %v", id, w.Namespace, gpus(w), s.Reason(id), left, cluster, most)
					}
				}
				if why := s.Reason(id); why == nil || (why.Kind == workload.ReasonHeld) != held {
					t.Fatalf("%s with %d GPUs has the reason %+v, want it held: %v, with bounds %v", id, gpus(w), why, held, most)
				}
			}
		}
	})
}
