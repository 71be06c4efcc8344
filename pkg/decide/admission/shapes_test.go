package admission_test

import (
	"fmt"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// shapes is a full node with that many gangs that wait, each of another shape, in a queue that may
// preempt. They have considered evictions: all that runs together is not enough. Other
// nodes have room for a hundred small gangs each.
func shapes(tb testing.TB, count, rooms int) (*admission.State, time.Time) {
	tb.Helper()
	s := admission.NewState(treeOf(tb, gpuPolicy(tb, false, gpuQueue("a", -1, `"withinClusterQueue": "LowerPriority"`), gpuQueue("b", -1, `"reclaimWithinCohort": "Any"`))))
	s.SetNode(nodeOf("gpus", 8, 8))
	for i := range rooms {
		s.SetNode(nodeOf(fmt.Sprintf("cpus-%d", i), 1000, 0))
	}
	enterShape(s, 0, 0, setOf("workers", 1, 1, 8))
	admission.Decide(s, start)
	now := start.Add(time.Hour)
	for i := range count {
		set := setOf("workers", 1, 1, 9)
		set.Template.Requests[resource.Memory] = int64(i + 1)
		enterShape(s, 1+i, 5, set)
	}
	for plan := admission.Decide(s, now); !plan.NextAt.IsZero() && plan.NextAt.Sub(now) < time.Minute; plan = admission.Decide(s, now) {
		now = plan.NextAt // searches that were cut
	}
	if classes, _ := admission.Blocked(s); classes != count {
		tb.Fatalf("%d classes are blocked, want %d", classes, count)
	}
	return s, now
}

func enterShape(s *admission.State, i int, priority int32, set workload.PodSet) {
	s.Enqueue(admission.Waiting{Order: int64(i), Since: start, Workload: &workload.Workload{
		ID: workload.ID(fmt.Sprintf("gang-%d", i)), Queue: "a", Priority: priority, PodSets: []workload.PodSet{set},
	}})
}

// TestAnAdmissionLooksAtFewBlockedClasses: a gang that starts is another candidate for each of
// thousands of blocked classes. The decision notes when they are tried again, and finds the
// earliest of these times, without looking at each.
func TestAnAdmissionLooksAtFewBlockedClasses(t *testing.T) {
	t.Parallel()
	const count, most = 5000, 200
	s, now := shapes(t, count, 1)
	_, before := admission.Blocked(s)
	enterShape(s, count+1, 0, setOf("workers", 1, 1, 0))
	plan := admission.Decide(s, now)
	if len(plan.Admissions) != 1 {
		t.Fatalf("%d admissions, want one", len(plan.Admissions))
	}
	if want := now.Add(time.Second); !plan.NextAt.Equal(want) {
		t.Errorf("the next decision is at %v, want %v, when the gang may be evicted", plan.NextAt, want)
	}
	if _, after := admission.Blocked(s); after-before > most {
		t.Errorf("the decision looked at %d of %d blocked classes, want %d at most", after-before, count, most)
	}
	if again := admission.Decide(s, plan.NextAt); len(again.Admissions)+len(again.Evictions) != 0 {
		t.Errorf("the decision afterwards is %+v, want nothing", again)
	}
}

// TestAnEvictionLooksAtFewBlockedClasses: a gang is evicted for another. The blocked classes that
// could evict it themselves in vain are not tried again, nor looked at.
func TestAnEvictionLooksAtFewBlockedClasses(t *testing.T) {
	t.Parallel()
	const count, most = 5000, 200
	s, now := shapes(t, count, 1)
	_, before := admission.Blocked(s)
	enterShape(s, count+1, 5, setOf("workers", 1, 1, 8))
	plan := admission.Decide(s, now)
	if len(plan.Evictions) != 1 || plan.Evictions[0].Workload != "gang-0" {
		t.Fatalf("the decision is %+v, want the eviction of gang-0", plan)
	}
	if _, after := admission.Blocked(s); after-before > most {
		t.Errorf("the decision looked at %d of %d blocked classes, want %d at most", after-before, count, most)
	}
}

// BenchmarkShapes is a gang that starts while many others wait, each of another shape, which may
// evict it once it is no longer protected; then it ends.
func BenchmarkShapes(b *testing.B) {
	for _, count := range []int{100, 50_000} {
		b.Run(fmt.Sprintf("shapes=%d", count), func(b *testing.B) {
			s, now := shapes(b, count, 2000)
			_, before := admission.Blocked(s)
			next := count + 1
			for b.Loop() {
				enterShape(s, next, 0, setOf("workers", 1, 1, 0))
				if plan := admission.Decide(s, now); len(plan.Admissions) != 1 {
					b.Fatalf("%d admissions, want one", len(plan.Admissions))
				}
				next++
			}
			_, after := admission.Blocked(s)
			b.ReportMetric(float64(after-before)/float64(b.N), "looks/op")
		})
	}
}
