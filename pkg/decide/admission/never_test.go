package admission_test

import (
	"maps"
	"strings"
	"testing"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// labelled returns a set that selects a label.
func labelled(set workload.PodSet, key, value string) workload.PodSet {
	set.Template.NodeSelector = map[string]string{key: value}
	return set
}

func requesting(set workload.PodSet, name resource.Name, amount int64) workload.PodSet {
	set.Template.Requests = set.Template.Requests.Plus(resource.List{name: amount})
	return set
}

// The reason differs between what never fits and what waits for others to end.
func TestWhatNeverFits(t *testing.T) {
	t.Parallel()
	tainted := nodeOf("tainted", 4, 0)
	tainted.Labels["pool"], tainted.Taints = "batch", []capacity.Taint{{Key: "team", Value: "a", Effect: "NoSchedule"}}
	away := nodeOf("away", 16, 0)
	away.Ready, away.Cordoned = false, true
	away.Taints = []capacity.Taint{{Key: "node.kubernetes.io/unreachable", Effect: "NoExecute"}}
	for name, c := range map[string]struct {
		set  workload.PodSet
		want string // "" when it only waits
	}{
		"as much as is away":              {setOf("w", 4, 8, 0), ""},
		"more than all nodes together":    {setOf("w", 3, 8, 4), `pod set "w" has 3 pods, and all nodes that take them have room for 2 together when empty`},
		"a node that is away":             {setOf("w", 1, 16, 0), ""},
		"more than a node has":            {setOf("w", 1, 1, 8), `each pod of pod set "w" requests nvidia.com/gpu 8, and the largest node that takes it offers 4 when empty`},
		"two resources on different ones": {setOf("w", 1, 16, 4), "requests cpu 16 and nvidia.com/gpu 4, and no node that takes it offers all of them"},
		"no such resource":                {requesting(setOf("w", 1, 1, 0), "amd.com/tpu", 1), `no node that takes pods of pod set "w" offers amd.com/tpu, of which each requests 1; it waits`},
		"a slip":                          {requesting(setOf("w", 1, 1, 0), "nvidia.com/gpus", 1), "did you mean nvidia.com/gpu?"},
		"another domain":                  {requesting(setOf("w", 1, 1, 0), "nvidia/gpu", 1), "did you mean nvidia.com/gpu?"},
		"no such label":                   {labelled(setOf("w", 1, 1, 0), "pool", "training"), "none has the label pool=training"},
		"a taint":                         {labelled(setOf("w", 1, 1, 0), "pool", "batch"), "such as team=a:NoSchedule"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stateOf([]capacity.Node{nodeOf("one", 8, 4), nodeOf("two", 8, 4), tainted, away}, []workload.PodSet{c.set})
			plan := decide(s)
			if len(plan.Waits) != 1 || len(plan.Admissions) != 0 {
				t.Fatalf("the plan is %+v, want one that waits", plan)
			}
			why := plan.Waits[0].Reason
			if never := why.Kind == workload.ReasonNeverFits; never != (c.want != "") || !strings.Contains(why.Message, c.want) {
				t.Errorf("it waits because of %s: %s\nwant %q", why.Kind, why.Message, c.want)
			}
		})
	}
}

// Of pod sets that each fit alone, the sums are compared: 1 GPU for the head and 8 for the
// workers are more than there are. A node more is enough, and its end is not.
func TestAGangLargerThanAllNodesNeverFits(t *testing.T) {
	t.Parallel()
	gang := []workload.PodSet{setOf("head", 1, 1, 1), setOf("w", 8, 1, 1)}
	busy := nodeOf("three", 8, 4)
	busy.Unmanaged = resource.List{"nvidia.com/gpu": 4}
	s := stateOf([]capacity.Node{nodeOf("one", 8, 4), nodeOf("two", 8, 4)}, gang)
	const want = "the gang requests nvidia.com/gpu 9 together, and all nodes that take its pods offer 8 when empty; it waits until"
	if why := decide(s).Waits[0].Reason; why.Kind != workload.ReasonNeverFits || !strings.HasPrefix(why.Message, want) {
		t.Fatalf("it waits because of %s: %s\nwant %q", why.Kind, why.Message, want)
	}
	s.SetNode(busy)
	if why := decide(s).Waits[0].Reason; why.Kind != workload.ReasonFit {
		t.Fatalf("with a node more it waits because of %+v", why)
	}
	s.RemoveNode(admission.NodeKey{Cluster: "c", Name: "two"})
	if why := decide(s).Waits[0].Reason; why.Kind != workload.ReasonNeverFits {
		t.Fatalf("with a node less it waits because of %+v", why)
	}
	s.SetNode(nodeOf("four", 8, 4))
	if plan := decide(s); len(plan.Admissions) != 0 || plan.Waits[0].Reason.Kind != workload.ReasonFit {
		t.Fatalf("4 of 12 GPUs are busy, and the plan is %+v", plan)
	}
}

// Only nodes decide, not what runs on them: the reason follows when a node comes, goes
// or changes, even if there is no room on it.
func TestWhatNeverFitsIsReportedAgainWhenNodesChange(t *testing.T) {
	t.Parallel()
	large := nodeOf("large", 8, 8)
	large.Unmanaged = resource.List{"nvidia.com/gpu": 8}
	s := stateOf([]capacity.Node{nodeOf("one", 8, 4)}, []workload.PodSet{setOf("w", 1, 1, 8)})
	wantReason := func(want workload.ReasonKind, change string) {
		t.Helper()
		if !s.Pending(start) {
			t.Fatalf("%s: no decision is due", change)
		}
		plan := decide(s)
		if len(plan.Waits) != 1 || plan.Waits[0].Reason.Kind != want {
			t.Fatalf("%s: the plan is %+v, want the reason %s", change, plan, want)
		}
	}
	wantReason(workload.ReasonNeverFits, "submitted")
	s.SetNode(large)
	wantReason(workload.ReasonFit, "a large node is added")
	s.SetNode(nodeOf("other", 8, 4))
	if plan := decide(s); len(plan.Waits) != 0 {
		t.Fatalf("a node that changes nothing is added, and the plan is %+v", plan)
	}
	s.RemoveNode(admission.NodeKey{Cluster: "c", Name: "large"})
	wantReason(workload.ReasonNeverFits, "the large node is removed")
	large.Cordoned = true
	s.SetNode(large)
	wantReason(workload.ReasonFit, "it is back, cordoned")
	large.Taints = []capacity.Taint{{Key: "team", Value: "b", Effect: "NoSchedule"}}
	s.SetNode(large)
	wantReason(workload.ReasonNeverFits, "it is tainted")
	large.Cordoned, large.Taints, large.Unmanaged = false, nil, nil
	s.SetNode(large)
	if plan := decide(s); len(plan.Admissions) != 1 {
		t.Fatalf("the node is free, and the plan is %+v", plan)
	}
}

// Another cluster may offer what one does not, and a cluster without nodes is unknown.
func TestNeverFitsMeansAllClusters(t *testing.T) {
	t.Parallel()
	small, large := nodeOf("small", 8, 4), nodeOf("large", 8, 8)
	large.Cluster = "d"
	large.Unmanaged = resource.List{"nvidia.com/gpu": 8}
	s := stateOf([]capacity.Node{small, large}, []workload.PodSet{setOf("w", 1, 1, 8)})
	if plan := decide(s); plan.Waits[0].Reason.Kind != workload.ReasonFit {
		t.Fatalf("cluster d offers enough, and the plan is %+v", plan)
	}
	s.RemoveNode(admission.NodeKey{Cluster: "d", Name: "large"})
	decide(s)
	if why := s.Reason("gang-0"); why.Kind != workload.ReasonFit {
		t.Fatalf("cluster d has no nodes, so what it offers is unknown; it waits because of %+v", why)
	}
}

// More than the whole quota never fits, whatever nodes there are; used quota comes back.
func TestNeverFitsForQuota(t *testing.T) {
	t.Parallel()
	s := admission.NewState(treeOf(t, gpuPolicy(t, false, gpuQueue("a", 4, ""))))
	for _, name := range []string{"one", "two", "three", "four"} {
		s.SetNode(nodeOf(name, 8, 8))
	}
	enter(t, s, 1, "first a 0 4")
	enter(t, s, 2, "second a 0 4")
	enter(t, s, 3, "never a 0 1000")
	decide(s)
	if why := s.Reason("never"); why.Kind != workload.ReasonNeverFits || why.Quota == nil || !strings.Contains(why.Message, "maximum quota") {
		t.Errorf("more than the quota waits because of %+v", why)
	}
	if why := s.Reason("second"); why == nil || why.Kind != workload.ReasonQuota {
		t.Errorf("what waits for used quota waits because of %+v", why)
	}
	if n := s.NeverFit(); n != 1 {
		t.Errorf("%d workloads never fit, want 1", n)
	}
}

// A workload behind the head of a strict queue never fits by its reason and by explain, as one
// that is tried, and no more once a node that is large enough has come, or again
// when that has gone.
func TestWhatNeverFitsBehindTheHead(t *testing.T) {
	t.Parallel()
	s := admission.NewState(strictTree(t))
	s.SetNode(nodeOf("a", 8, 2))
	enqueue(s, 0, "queue", []workload.PodSet{setOf("workers", 1, 1, 2)})
	enqueue(s, 1, "queue", []workload.PodSet{setOf("workers", 1, 1, 1)})
	enqueue(s, 2, "queue", []workload.PodSet{setOf("workers", 1, 1, 1)})
	enqueue(s, 3, "queue", []workload.PodSet{setOf("workers", 1, 1, 8)})
	enqueue(s, 4, "queue", []workload.PodSet{setOf("workers", 1, 1, 8)})
	reported := map[workload.ID]workload.Reason{}
	for _, wait := range decide(s).Waits {
		reported[wait.Workload] = wait.Reason
	}
	const (
		behind = `waiting for the head of queue "queue": under StrictFIFO no workload may pass it`
		never  = `each pod of pod set "workers" requests nvidia.com/gpu 8, and the largest node that takes it offers 2 when empty; it waits until a node is added or changed. Now: ` + behind
	)
	for id, want := range map[workload.ID]string{"gang-2": behind, "gang-3": never, "gang-4": never} {
		t.Run(string(id), func(t *testing.T) {
			kind := workload.ReasonBehindHead
			if want == never {
				kind = workload.ReasonNeverFits
			}
			question, _ := s.Ask(id)
			explained, _ := admission.Explain(s, id, start)
			answered := admission.Answer(s, true, question, start, func() bool { return false })
			for from, got := range map[string]workload.Reason{"report": reported[id], "explain": explained.Reason, "answer": answered.Reason} {
				if got.Kind != kind || got.Message != want {
					t.Errorf("%s of %s: the reason is %+v, want %s: %s", from, id, got, kind, want)
				}
			}
		})
	}
	if n := s.NeverFit(); n != 2 {
		t.Errorf("%d workloads never fit, want 2", n)
	}
	large := nodeOf("large", 8, 8)
	large.Unmanaged = resource.List{"nvidia.com/gpu": 8}
	again := func(change string, want workload.ReasonKind) {
		t.Helper()
		plan := decide(s)
		var ids []workload.ID
		for _, wait := range plan.Waits {
			if ids = append(ids, wait.Workload); wait.Reason.Kind != want {
				t.Errorf("%s: %+v", change, wait)
			}
		}
		if len(ids) != 2 || ids[0] != "gang-3" || ids[1] != "gang-4" {
			t.Errorf("%s: %v are reported again, want gang-3 and gang-4", change, ids)
		}
	}
	s.SetNode(large)
	again("a large node has come", workload.ReasonBehindHead)
	s.RemoveNode(admission.NodeKey{Cluster: "c", Name: "large"})
	again("it has gone", workload.ReasonNeverFits)
	if plan := decide(s); len(plan.Waits) != 0 {
		t.Errorf("nothing has changed, and the plan is %+v", plan)
	}
}

// A node that changes has only those classes behind a head looked at again to whom it may offer
// something else: there may be thousands, and nodes come and go.
func TestAChangedNodeIsLookedAtOnlyByWhoMayUseIt(t *testing.T) {
	t.Parallel()
	s := admission.NewState(strictTree(t))
	s.SetNode(nodeOf("a", 8, 2))
	enqueue(s, 0, "queue", []workload.PodSet{setOf("workers", 1, 1, 2)})
	enqueue(s, 1, "queue", []workload.PodSet{setOf("workers", 1, 1, 1)})
	enqueue(s, 2, "queue", []workload.PodSet{setOf("workers", 1, 1, 8)})
	enqueue(s, 3, "queue", []workload.PodSet{setOf("workers", 1, 16, 1)})
	decide(s)
	s.SetNode(nodeOf("b", 8, 0)) // the first comparison is of all
	decide(s)
	gpus, cpus := admission.NeverOf(s, "gang-2"), admission.NeverOf(s, "gang-3")
	if gpus == nil || cpus == nil {
		t.Fatalf("the gangs never fit by %v and %v", gpus, cpus)
	}
	s.SetNode(nodeOf("a", 16, 2))
	decide(s)
	if again := admission.NeverOf(s, "gang-2"); again != gpus {
		t.Errorf("that no node has 8 GPUs was found again: %v", again)
	}
	if again := admission.NeverOf(s, "gang-3"); again != nil {
		t.Errorf("with a node of 16 CPUs it never fits: %v", again)
	}
	large := nodeOf("c", 8, 8)
	large.Unmanaged = resource.List{"nvidia.com/gpu": 8} // it is in use: nothing starts
	s.SetNode(large)
	decide(s)
	if again := admission.NeverOf(s, "gang-2"); again != nil {
		t.Errorf("with a node of 8 GPUs it never fits: %v", again)
	}
}

// A term that begins compares what was reported of workloads behind a head with what is so now.
func TestWhatNeverFitsBehindTheHeadInANewTerm(t *testing.T) {
	t.Parallel()
	s := admission.NewState(strictTree(t))
	s.SetNode(nodeOf("a", 8, 2))
	for i, c := range []struct {
		gpus  int64
		never bool
	}{{2, false}, {1, false}, {1, false}, {8, true}, {8, false}, {1, true}} {
		s.Enqueue(admission.Waiting{Order: int64(i), Reported: true, Never: c.never, Workload: &workload.Workload{
			ID: workload.ID("gang-" + string(rune('0'+i))), Queue: "queue", PodSets: []workload.PodSet{setOf("workers", 1, 1, c.gpus)},
		}})
	}
	got := map[workload.ID]workload.ReasonKind{}
	for _, wait := range decide(s).Waits {
		got[wait.Workload] = wait.Reason.Kind
	}
	want := map[workload.ID]workload.ReasonKind{"gang-1": workload.ReasonFit, "gang-4": workload.ReasonNeverFits, "gang-5": workload.ReasonBehindHead}
	if !maps.Equal(got, want) {
		t.Errorf("reported again are %v, want %v", got, want)
	}
}
