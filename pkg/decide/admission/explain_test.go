package admission_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// apply carries the change out as its words say, and decides.
func (m *model) apply(id workload.ID, c workload.Change) admission.Plan {
	switch c.Kind {
	case workload.ChangeMoreQuota:
		config := m.config
		for _, raise := range c.Quota {
			config = config.Raised(raise.Queue, raise.Flavor, raise.Resource, raise.Amount)
		}
		tree, err := quota.New(config)
		if err != nil {
			m.t.Fatal(err)
		}
		m.state.Reconfigure(tree)
	case workload.ChangeFewerPods, workload.ChangePriority:
		w := *m.gangs[id]
		w.PodSets = slices.Clone(w.PodSets)
		for i := range w.PodSets {
			if w.PodSets[i].Name == c.PodSet {
				w.PodSets[i].Count -= c.Pods
			}
		}
		if c.Kind == workload.ChangePriority {
			w.Priority = c.Priority
		}
		m.enqueue(&w)
	case workload.ChangeMoreNodes:
		for i := range c.Nodes {
			m.state.SetNode(admission.NodeLike(m.nodes[c.Like], i))
		}
	case workload.ChangeOpenNode:
		m.state.SetNode(admission.Opened(m.nodes[c.Node]))
	case workload.ChangeAfterEnd:
		for _, gone := range c.Workloads {
			m.state.Leave(gone)
			m.state.Release(gone)
		}
	}
	return admission.Decide(m.state, m.now)
}

// Every change that is suggested admits the workload, and the explaining itself
// changes nothing: in queues of each strategy, and of all of them side by side.
func TestSuggestedChangesAdmit(t *testing.T) {
	t.Parallel()
	for _, strategy := range allStrategies {
		t.Run(strategy, func(t *testing.T) { suggestedChangesAdmit(t, strategy) })
	}
	t.Run("mixed", func(t *testing.T) { suggestedChangesAdmit(t, allStrategies...) })
}

func suggestedChangesAdmit(t *testing.T, strategies ...string) {
	t.Parallel()
	kinds := map[workload.ChangeKind]int{}
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t, drawPolicyOf(t, strategies))
		for i := range rapid.IntRange(1, 25).Draw(t, "events") {
			m.step(i)
		}
		if m.state.Pending(m.now) { // one that asked for more was evicted, and asks no more
			m.decide()
		}
		if len(m.waiting) == 0 {
			return
		}
		id := rapid.SampledFrom(slices.Sorted(maps.Keys(m.waiting))).Draw(t, "explained")
		explained, ok := admission.Explain(m.state, id, m.now)
		if !ok || explained.Reason.Message == "" {
			t.Fatalf("%s waits and is not explained: %+v", id, explained)
		}
		again, _ := admission.Explain(m.state, id, m.now)
		if diff := cmp.Diff(explained, again); diff != "" {
			t.Fatalf("explained once more (-before +after):\n%s", diff)
		}
		if m.state.Pending(m.now) {
			t.Fatal("after explaining a decision is pending")
		}
		if len(explained.Changes) == 0 {
			return
		}
		change := rapid.SampledFrom(explained.Changes).Draw(t, "change")
		kinds[change.Kind]++
		if plan := m.apply(id, change); !slices.ContainsFunc(append(plan.Admissions, plan.Growths...), func(a admission.Admission) bool { return a.Workload == id }) {
			t.Fatalf("%s waits because of %+v, and does not start with %+v, but %+v", id, explained.Reason, change, plan)
		}
	})
	t.Logf("changes that were tried: %v", kinds)
}

// A copy of a state decides as the state does, whatever happened before, and has
// changed nothing then.
func TestACopyDecidesAsTheState(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t, drawPolicy(t))
		m.copies = true
		for i := range rapid.IntRange(1, 40).Draw(t, "events") {
			m.step(i)
		}
	})
}

// explained returns the messages of the changes.
func explained(t *testing.T, s *admission.State, id workload.ID) string {
	t.Helper()
	e, ok := admission.Explain(s, id, start)
	if !ok {
		t.Fatalf("%s does not wait", id)
	}
	var texts []string
	for _, c := range e.Changes {
		texts = append(texts, c.Message)
	}
	return strings.Join(texts, "\n")
}

func TestWhatWouldChangeIt(t *testing.T) {
	t.Parallel()
	s := admission.NewState(treeOf(t, gpuPolicy(t, false, gpuQueue("a", 6, ""))))
	s.SetNode(nodeOf("one", 64, 4))
	s.SetNode(nodeOf("two", 64, 4))
	enter(t, s, 0, "x a 0 3")
	admission.Decide(s, start)
	enter(t, s, 1, "w a 0 7")
	admission.Decide(s, start)
	want := `4 pods fewer in pod set "workers" (3 instead of 7)`
	if got := explained(t, s, "w"); got != want {
		t.Errorf("quota and nodes are short; the changes are\n%s\nwant\n%s", got, want)
	}
	s.Dequeue("w")
	enter(t, s, 2, "v a 0 5")
	admission.Decide(s, start)
	want = `2 pods fewer in pod set "workers" (3 instead of 5)
more quota in ClusterQueue "a": 2 nvidia.com/gpu of flavor "default"
after the end of workload x`
	if got := explained(t, s, "v"); got != want {
		t.Errorf("quota alone is short; the changes are\n%s\nwant\n%s", got, want)
	}
}

func TestMoreNodesOfAKind(t *testing.T) {
	t.Parallel()
	big := nodeOf("big", 64, 8)
	s := stateOf([]capacity.Node{nodeOf("small", 64, 2), big}, []workload.PodSet{setOf("workers", 1, 1, 8)}, []workload.PodSet{setOf("workers", 2, 1, 4)})
	admission.Decide(s, start)
	want := `1 pod fewer in pod set "workers" (1 instead of 2)`
	got := explained(t, s, "gang-1")
	if strings.Contains(got, want) || !strings.Contains(got, "1 more empty node like big (cpu 64, nvidia.com/gpu 8, pods 110) in cluster c") ||
		strings.Contains(got, "small") || !strings.Contains(got, "after the end of workload gang-0") {
		t.Errorf("the changes are\n%s", got)
	}
}

// TestABarredNodeIsToBeOpened: a node that an operator has cordoned or drained, and that
// would be enough, is named beside a further one.
func TestABarredNodeIsToBeOpened(t *testing.T) {
	t.Parallel()
	drain := capacity.Taint{Key: capacity.DrainTaint, Effect: "NoSchedule"}
	for name, c := range map[string]struct {
		bar   func(*capacity.Node)
		want  string
		never bool
	}{
		"cordoned":  {bar: func(n *capacity.Node) { n.Cordoned = true }, want: "uncordoning node gpu-0 in cluster c"},
		"drained":   {bar: func(n *capacity.Node) { n.Taints = []capacity.Taint{drain} }, want: "removing the taint muster.dev/drain from node gpu-0 in cluster c"},
		"both":      {bar: func(n *capacity.Node) { n.Cordoned, n.Taints = true, []capacity.Taint{drain} }, want: "uncordoning and removing the taint muster.dev/drain from node gpu-0 in cluster c"},
		"too small": {bar: func(n *capacity.Node) { n.Cordoned, n.Unmanaged = true, resource.List{"nvidia.com/gpu": 7} }, want: "node gpu-0 in cluster c", never: true},
		"not ready": {bar: func(n *capacity.Node) { n.Cordoned, n.Ready = true, false }, want: "node gpu-0 in cluster c", never: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := nodeOf("gpu-0", 64, 8)
			c.bar(&node)
			s := stateOf([]capacity.Node{node}, []workload.PodSet{setOf("workers", 1, 1, 8)})
			admission.Decide(s, start)
			if got := explained(t, s, "gang-0"); strings.Contains(got, c.want) == c.never {
				t.Errorf("the changes are\n%s\nwant %q in them: %v", got, c.want, !c.never)
			}
		})
	}
}

func TestAHeldQueueIsToBeResumed(t *testing.T) {
	t.Parallel()
	s := admission.NewState(treeOf(t, quota.Config{ClusterQueues: []quota.ClusterQueue{{Name: "a", StopPolicy: quota.Hold}}}))
	s.SetNode(nodeOf("one", 8, 4))
	enter(t, s, 1, "w a 0 1")
	admission.Decide(s, start)
	if got := explained(t, s, "w"); got != `when queue "a" is not held any more` {
		t.Errorf("the changes are %q", got)
	}
}

// An explanation has current amounts, although the workload has not been tried since it
// was refused.
func TestAnExplanationHasThePresentAmounts(t *testing.T) {
	t.Parallel()
	s := stateOf([]capacity.Node{nodeOf("a", 32, 8)},
		[]workload.PodSet{setOf("w", 1, 1, 5)}, []workload.PodSet{setOf("w", 1, 1, 2)}, []workload.PodSet{setOf("w", 1, 1, 8)})
	decide(s)
	free := func() int64 {
		t.Helper()
		explained, ok := admission.Explain(s, "gang-2", start)
		if !ok || explained.Reason.Shortage == nil {
			t.Fatalf("gang-2 is explained by %+v, want a shortage", explained.Reason)
		}
		return explained.Reason.Shortage.Largest
	}
	if got := free(); got != 1 {
		t.Errorf("%d GPUs are said to be free, want 1", got)
	}
	s.Leave("gang-1")
	s.Release("gang-1")
	decide(s)
	if got := free(); got != 3 {
		t.Errorf("%d GPUs are said to be free after the end of gang-1, want 3", got)
	}
}
