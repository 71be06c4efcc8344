package admission_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

func never() bool { return false }

// snapshot is one that is taken in one go.
func snapshot(s *admission.State, most int) *admission.Snapshot {
	for b := s.BeginSnapshot(most); ; {
		if _, whole := b.Next(77); whole != nil {
			return whole
		}
	}
}

// TestASnapshotIsTakenInPieces: no piece copies more than it may, however much there
// is, and a state that goes on meanwhile makes one that can be answered on.
func TestASnapshotIsTakenInPieces(t *testing.T) {
	t.Parallel()
	const piece, waiting = 1000, 10_000
	s := crowd(t, waiting)
	taking, pieces, all := s.BeginSnapshot(waiting), 0, 0
	next := 1_000_000
	for {
		copied, whole := taking.Next(piece)
		pieces, all = pieces+1, all+copied
		if copied > piece {
			t.Fatalf("piece %d has %d entries, want at most %d", pieces, copied, piece)
		}
		if whole != nil {
			other, err := whole.State()
			if err != nil {
				t.Fatal(err)
			}
			q, _ := s.Ask("gang-5010")
			if answer := admission.Answer(other, whole.Complete(), q, start, func() bool { return true }); answer.Reason.Kind != workload.ReasonFit {
				t.Errorf("it is explained by %+v", answer)
			}
			break
		}
		ended := workload.ID(fmt.Sprintf("gang-%d", pieces))
		s.Leave(ended)
		s.Release(ended)
		s.RemoveNode(admission.NodeKey{Cluster: "c", Name: fmt.Sprintf("node-%d", 4000+pieces)})
		enqueue(s, next, "full", []workload.PodSet{setOf("workers", 1, 1, 8)})
		next++
		decide(s)
	}
	if most := (all + piece - 1) / piece; pieces > most+3 || all < 2*5000+9*waiting/10-100 {
		t.Errorf("%d entries were copied in %d pieces", all, pieces)
	}
}

// tenants is a state in which gangs of two tenants wait for each other: mine and
// theirs share a cohort, and their gangs have taken what is ours.
func tenants(t testing.TB) *admission.State {
	s := admission.NewState(treeOf(t, gpuPolicy(t, false,
		gpuQueue("mine", 16, `"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"`),
		gpuQueue("theirs", 16, `"reclaimWithinCohort": "Any"`),
		`{"name": "filling", "queueingStrategy": "Backfill", "quotaCheckStrategy": "IgnoreUndeclared"}`)))
	for i := range 8 {
		s.SetNode(nodeOf(fmt.Sprintf("node-%d", i), 96, 8))
	}
	return s
}

func submit(s *admission.State, name, queue, of string, order int, pods int, gpus int64) {
	s.Enqueue(admission.Waiting{Order: int64(order), Queue: of, Since: start, RunTime: time.Hour, Workload: &workload.Workload{
		ID: workload.ID("id-" + name), Name: name, Namespace: "team-" + queue, Queue: queue, PodSets: []workload.PodSet{setOf("w", pods, 1, gpus)},
	}})
}

// TestAnAnswerIsThatOfTheState: on a state made of a snapshot the same is explained as
// on the state itself.
func TestAnAnswerIsThatOfTheState(t *testing.T) {
	t.Parallel()
	s := crowd(t, 60)
	other, err := snapshot(s, 1000).State()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		id := workload.ID(fmt.Sprintf("gang-%d", 5000+i*5))
		want, waits := admission.Explain(s, id, start)
		q, asked := s.Ask(id)
		if !waits || !asked {
			t.Fatalf("%s does not wait", id)
		}
		if diff := cmp.Diff(want, admission.Answer(other, true, q, start, never)); diff != "" {
			t.Errorf("%s (-state +snapshot):\n%s", id, diff)
		}
	}
}

// TestASnapshotIsBounded: it has the first in line, and an answer that rests on too few
// says that it is not whole, and names no change.
func TestASnapshotIsBounded(t *testing.T) {
	t.Parallel()
	s := crowd(t, 3000)
	sn := snapshot(s, 500)
	if sn.Complete() {
		t.Error("500 of 3000 are said to be all")
	}
	other, err := sn.State()
	if err != nil {
		t.Fatal(err)
	}
	if waiting, started := other.Counts(); waiting > 500 || waiting < 400 || started != 5000 {
		t.Errorf("%d wait and %d have places", waiting, started)
	}
	for _, c := range []struct {
		id    workload.ID
		names bool // changes
	}{{"gang-5010", true}, {"gang-7999", false}} {
		t.Run(string(c.id), func(t *testing.T) {
			q, _ := s.Ask(c.id)
			answer := admission.Answer(other, sn.Complete(), q, start, never)
			if !answer.Partial || len(answer.Changes) > 0 != c.names || answer.Position != s.Position(c.id) || answer.Waiting != 300 {
				t.Errorf("%s is explained by %+v", c.id, answer)
			}
		})
	}
}

// TestEnoughEndsTheLooking: what was found until then is the answer.
func TestEnoughEndsTheLooking(t *testing.T) {
	t.Parallel()
	s := crowd(t, 30)
	q, _ := s.Ask("gang-5010")
	other, err := snapshot(s, 1000).State()
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	answer := admission.Answer(other, true, q, start, func() bool { asked++; return asked > 2 })
	if !answer.Partial || answer.Reason.Kind != workload.ReasonFit {
		t.Errorf("it is explained by %+v", answer)
	}
}

// TestNothingOfOtherQueuesIsShown: no reason, eviction or explanation that a tenant
// reads has the name or the id of another queue's workload.
func TestNothingOfOtherQueuesIsShown(t *testing.T) {
	t.Parallel()
	s := tenants(t)
	submit(s, "theirs-1", "theirs", "theirs", 1, 2, 8)
	submit(s, "theirs-2", "theirs", "theirs", 2, 2, 8) // lent by mine
	submit(s, "filling-1", "filling-a", "filling", 3, 4, 8)
	admission.Decide(s, start)
	submit(s, "filling-2", "filling-a", "filling", 4, 8, 8) // its head
	submit(s, "filling-3", "filling-b", "filling", 5, 1, 1)
	submit(s, "mine-1", "mine", "mine", 6, 2, 8) // evicts
	submit(s, "mine-2", "mine", "mine", 7, 1, 8)
	plan := admission.Decide(s, start.Add(time.Minute))
	if len(plan.Evictions) == 0 {
		t.Fatal("none was evicted")
	}
	all := []string{"theirs-1", "theirs-2", "filling-1", "filling-2", "filling-3", "mine-1", "mine-2"}
	queues := map[string]string{"theirs-1": "theirs", "theirs-2": "theirs", "filling-1": "filling-a", "filling-2": "filling-a", "filling-3": "filling-b", "mine-1": "mine", "mine-2": "mine"}
	foreigners := 0
	check := func(reader string, answer any) {
		text, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range all {
			if queues[other] != queues[reader] && strings.Contains(string(text), other) {
				t.Errorf("the answer to %s names %s: %s", reader, other, text)
			}
		}
	}
	for _, e := range plan.Evictions {
		foreigners += len(e.Reason.Foreign)
		check(string(e.Workload)[3:], e.Reason.ForTenant())
		if e.Reason.Preemption.Preemptor == "" {
			t.Error("operators are not told for whom it is evicted")
		}
	}
	for _, name := range all {
		if why := s.Reason(workload.ID("id-" + name)); why != nil {
			foreigners += len(why.Foreign)
			check(name, why.ForTenant())
		}
		if explained, waits := admission.Explain(s, workload.ID("id-"+name), start.Add(time.Minute)); waits {
			for _, c := range explained.Changes {
				foreigners += len(c.Foreign)
			}
			check(name, explained.ForTenant())
		}
	}
	if foreigners < 4 {
		t.Errorf("only %d workloads of other queues were to be kept back", foreigners)
	}
}

// BenchmarkSnapshot is what a question may take of the owner of a state.
func BenchmarkSnapshot(b *testing.B) {
	for _, waiting := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			s := crowd(b, waiting)
			b.Run("begin", func(b *testing.B) {
				for b.Loop() {
					s.BeginSnapshot(10_000)
				}
			})
			b.Run("piece", func(b *testing.B) {
				builder := s.BeginSnapshot(10_000)
				for b.Loop() {
					if _, whole := builder.Next(1000); whole != nil {
						builder = s.BeginSnapshot(10_000)
					}
				}
			})
			b.Run("ask", func(b *testing.B) {
				for b.Loop() {
					s.Ask("gang-5010")
				}
			})
			sn := snapshot(s, 10_000)
			b.Run("state", func(b *testing.B) {
				for b.Loop() {
					if _, err := sn.State(); err != nil {
						b.Fatal(err)
					}
				}
			})
			other, _ := sn.State()
			q, _ := s.Ask("gang-5010")
			b.Run("answer", func(b *testing.B) {
				for b.Loop() {
					admission.Answer(other, sn.Complete(), q, start, never)
				}
			})
		})
	}
}

// TestASnapshotKnowsClustersWithoutNodes: a cluster that has listed its nodes, and has none, is
// explained as the state explains it.
func TestASnapshotKnowsClustersWithoutNodes(t *testing.T) {
	t.Parallel()
	s := admission.NewState(nil)
	s.SetCluster("c")
	enqueue(s, 0, "queue", []workload.PodSet{setOf("workers", 1, 1, 1)})
	decide(s)
	other, err := snapshot(s, 10).State()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.Reason("gang-0"), other.Reason("gang-0")); diff != "" {
		t.Errorf("the reason differs (-state +snapshot):\n%s", diff)
	}
	if diff := cmp.Diff(s.Clusters(), other.Clusters()); diff != "" {
		t.Errorf("the clusters differ (-state +snapshot):\n%s", diff)
	}
}

// TestWhoGivesWayInASnapshotWaits: the decision on a snapshot may take quota back from a gang that
// asks for nodes. It can still be explained.
func TestWhoGivesWayInASnapshotWaits(t *testing.T) {
	t.Parallel()
	s := askingState(t, preempting(3, quota.Preemption{WithinClusterQueue: quota.LowerPriority}), nodeOf("a", 8, 0))
	enqueueWith(s, 1, "queue", 0, 3)
	wantPlan(t, decide(s), "ask gang-1 [{workers 3}]")
	enqueueWith(s, 2, "queue", 9, 3)
	other, err := snapshot(s, 10).State()
	if err != nil {
		t.Fatal(err)
	}
	if why := other.Reason("gang-1"); why == nil || why.Kind != workload.ReasonQuota {
		t.Errorf("gang-1 waits for %+v, want quota", why)
	}
}
