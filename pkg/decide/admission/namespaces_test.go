package admission_test

import (
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// selecting returns a state with a queue for namespaces with the label team=a, a node in each
// cluster, and all that clusters have reported before the term.
func selecting(t *testing.T, strategy string, clusters ...string) *admission.State {
	t.Helper()
	s := admission.NewState(treeOf(t, quota.Config{ClusterQueues: []quota.ClusterQueue{{
		Name: "queue", Strategy: strategy, NamespaceSelector: &quota.LabelSelector{MatchLabels: map[string]string{"team": "a"}},
	}}}))
	for _, cluster := range clusters {
		s.SetNode(nodeIn(cluster, "node", 4))
		s.NamespacesKnown(cluster)
	}
	s.RequireNamespaces()
	return s
}

func team(name string) admission.Namespace {
	return admission.Namespace{Labels: map[string]string{"team": name}}
}

func enqueueFrom(s *admission.State, namespace string, id workload.ID, order int64) {
	s.Enqueue(admission.Waiting{Order: order, Workload: &workload.Workload{
		ID: id, Queue: "queue", Namespace: namespace, PodSets: []workload.PodSet{setOf("workers", 1, 1, 1)},
	}})
}

func reasonOf(plan admission.Plan, id workload.ID) string {
	why := ""
	for _, w := range plan.Waits {
		if w.Workload == id {
			why = string(w.Reason.Kind) + ": " + w.Reason.Message
		}
	}
	return why
}

// Kueue: a workload whose namespace does not match waits with that reason, and starts when the
// namespace gets the label. One that runs is not evicted when it loses it.
func TestASelectorFollowsTheLabelsOfNamespaces(t *testing.T) {
	t.Parallel()
	s := selecting(t, "", "c")
	s.SetNamespace("c", "ns", team("b"))
	enqueueFrom(s, "ns", "gang", 0)
	if got, want := reasonOf(decide(s), "gang"), `Held: namespace doesn't match ClusterQueue selector: ClusterQueue "queue" does not admit namespace "ns" of cluster "c": it has team=b, and the selector wants team In (a)`; got != want {
		t.Errorf("it waits because %s\nwant %s", got, want)
	}
	s.SetNamespace("c", "ns", team("a"))
	if got := admitted(decide(s)); got["gang"] != "c" {
		t.Fatalf("with the label admitted are %v", got)
	}
	s.SetNamespace("c", "ns", team("b"))
	enqueueFrom(s, "ns", "later", 1)
	plan := decide(s)
	if len(plan.Evictions) > 0 || !strings.Contains(reasonOf(plan, "later"), "does not admit") {
		t.Errorf("without the label: %+v", plan)
	}
}

// What is not known is no verdict: the reason says so.
func TestUnknownNamespacesMayNotUseAQueueThatSelects(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		report func(*admission.State)
		want   string // empty: it starts
	}{
		"nothing reported":      {func(*admission.State) {}, `the namespaces of cluster "c" have not been reported yet`},
		"the namespace alone":   {func(s *admission.State) { s.SetNamespace("c", "ns", team("a")) }, ""},
		"all but the namespace": {func(s *admission.State) { s.NamespacesKnown("c") }, `there is no namespace "ns" in cluster "c"`},
		"removed": {func(s *admission.State) {
			s.SetNamespace("c", "ns", team("a"))
			s.NamespacesKnown("c")
			s.RemoveNamespace("c", "ns")
		}, "there is no namespace"},
		"too many labels": {func(s *admission.State) { s.SetNamespace("c", "ns", admission.Namespace{Unread: 300}) }, "it has 300 labels, too many to be compared"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := admission.NewState(treeOf(t, quota.Config{ClusterQueues: []quota.ClusterQueue{{
				Name: "queue", NamespaceSelector: &quota.LabelSelector{MatchLabels: map[string]string{"team": "a"}},
			}}}))
			s.SetNode(nodeIn("c", "node", 4))
			s.RequireNamespaces()
			enqueueFrom(s, "ns", "gang", 0)
			decide(s)
			c.report(s)
			plan := admission.Decide(s, start.Add(time.Second))
			switch {
			case c.want == "":
				if len(plan.Admissions) != 1 {
					t.Errorf("it does not start: %+v", plan.Waits)
				}
			case s.Reason("gang") == nil || !strings.Contains(s.Reason("gang").Message, c.want):
				t.Errorf("the reason is %+v, want %q", s.Reason("gang"), c.want)
			}
		})
	}
}

// While a term begins, before it has read what clusters have reported, no gang waits for its
// namespace.
func TestATermThatBeginsHoldsNoGangForItsNamespace(t *testing.T) {
	t.Parallel()
	s := admission.NewState(treeOf(t, quota.Config{ClusterQueues: []quota.ClusterQueue{{
		Name: "queue", NamespaceSelector: &quota.LabelSelector{MatchLabels: map[string]string{"team": "a"}},
	}}}))
	s.SetNode(nodeIn("c", "node", 0))
	enqueueFrom(s, "ns", "gang", 0)
	if why := s.HeldReason(&workload.Workload{Queue: "queue", Namespace: "ns"}); why != nil {
		t.Errorf("it is held: %+v", why)
	}
	s.SetNamespace("c", "ns", team("a"))
	s.NamespacesKnown("c")
	s.RequireNamespaces()
	if got := reasonOf(decide(s), "gang"); strings.HasPrefix(got, "Held") {
		t.Errorf("it waits because %s", got)
	}
}

// As in Kueue, a gang whose namespace does not match blocks no other, not even under StrictFIFO.
func TestANamespaceThatIsNotSelectedBlocksNoGang(t *testing.T) {
	t.Parallel()
	s := selecting(t, quota.StrictFIFO, "c")
	s.SetNamespace("c", "out", team("b"))
	s.SetNamespace("c", "in", team("a"))
	enqueueFrom(s, "out", "head", 0)
	enqueueFrom(s, "in", "behind", 1)
	if got := admitted(decide(s)); got["behind"] != "c" || len(got) != 1 {
		t.Errorf("admitted are %v", got)
	}
}

// Gangs with equal pods of two namespaces run in the clusters where theirs is selected.
func TestANamespaceIsSelectedByCluster(t *testing.T) {
	t.Parallel()
	s := selecting(t, "", "east", "west")
	s.SetNamespace("east", "blue", team("a"))
	s.SetNamespace("west", "blue", team("b"))
	s.SetNamespace("west", "green", team("a"))
	enqueueFrom(s, "green", "g", 0)
	enqueueFrom(s, "blue", "b", 1)
	if got := admitted(decide(s)); got["g"] != "west" || got["b"] != "east" {
		t.Fatalf("admitted are %v", got)
	}
	for i := range 3 { // east is full then
		enqueueFrom(s, "blue", workload.ID(rune('0'+i)), int64(2+i))
	}
	enqueueFrom(s, "blue", "more", 9)
	if got := admitted(decide(s)); got["more"] != "" {
		t.Fatalf("admitted are %v", got)
	}
	s.SetNamespace("west", "blue", team("a"))
	if got := admitted(decide(s)); got["more"] != "west" {
		t.Errorf("with the label in the west admitted are %v", got)
	}
}

// An explanation in another goroutine knows the namespaces, too.
func TestASnapshotHasTheNamespaces(t *testing.T) {
	t.Parallel()
	s := selecting(t, "", "c")
	s.SetNamespace("c", "ns", team("b"))
	enqueueFrom(s, "ns", "gang", 0)
	enqueueFrom(s, "ns", "held-too", 1)
	decide(s)
	var whole *admission.Snapshot
	for b := s.BeginSnapshot(100); whole == nil; {
		_, whole = b.Next(100)
	}
	s.SetNamespace("c", "ns", team("a")) // the snapshot keeps what was known
	copied, err := whole.State()
	if err != nil {
		t.Fatal(err)
	}
	if why := copied.HeldReason(&workload.Workload{Queue: "queue", Namespace: "ns"}); why == nil || !strings.Contains(why.Message, "team=b") {
		t.Errorf("in the snapshot it is held by %+v", why)
	}
	tree := treeOf(t, s.Quota().Config())
	s.Reconfigure(tree)
	if got := admitted(decide(s)); len(got) != 2 {
		t.Errorf("after a configuration with the same selector admitted are %v", got)
	}
}
