package admission_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// BenchmarkDecide decides on one new gang of three pods on 1,000 nodes, and
// frees its places again.
func BenchmarkDecide(b *testing.B) {
	s := admission.NewState(nil)
	for i := range 1000 {
		s.SetNode(nodeOf(fmt.Sprintf("node-%d", i), 96, 8))
	}
	decide(s)
	sets := []workload.PodSet{setOf("head", 1, 2, 0), setOf("workers", 2, 8, 8)}
	for b.Loop() {
		enqueue(s, 0, "queue", sets)
		if plan := decide(s); len(plan.Admissions) != 1 {
			b.Fatalf("not admitted: %+v", plan.Waits)
		}
		s.Release("gang-0")
	}
}

// crowd has 5,000 full nodes and that number of waiting gangs, of a hundred signatures,
// in ten queues.
func crowd(tb testing.TB, waiting int) *admission.State {
	s := admission.NewState(nil)
	for i := range 5000 {
		s.SetNode(nodeOf(fmt.Sprintf("node-%d", i), 96, 8))
	}
	for i := range 5000 {
		enqueue(s, i, "full", []workload.PodSet{setOf("workers", 1, 1, 8)})
	}
	if plan := decide(s); len(plan.Admissions) != 5000 {
		tb.Fatalf("%d of 5000 admitted", len(plan.Admissions))
	}
	for i := range waiting {
		enqueue(s, 5000+i, fmt.Sprintf("queue-%d", i%10), []workload.PodSet{setOf("workers", 2+i%100, 1, 8)})
	}
	decide(s)
	return s
}

// BenchmarkNodeEvent is a gang that ends on a full cluster, and a gang that takes its
// places, with many waiting gangs that do not fit.
func BenchmarkNodeEvent(b *testing.B) {
	for _, waiting := range []int{0, 10_000, 100_000} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			s := crowd(b, waiting)
			next, last := 1_000_000, workload.ID("gang-0")
			for b.Loop() {
				s.Leave(last)
				s.Release(last)
				enqueue(s, next, "full", []workload.PodSet{setOf("workers", 1, 1, 8)})
				if plan := decide(s); len(plan.Admissions) != 1 {
					b.Fatalf("%d admitted", len(plan.Admissions))
				}
				last = workload.ID(fmt.Sprintf("gang-%d", next))
				next++
			}
		})
	}
}

// BenchmarkDepth is a gang that ends on 100 full nodes, and one that takes its place, while
// 1,000 wait of which as many as the depth says have reservations: all are made again, until
// the work of the decision is spent.
func BenchmarkDepth(b *testing.B) {
	for _, depth := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprintf("depth=%d", depth), func(b *testing.B) {
			s := admission.NewState(treeOf(b, quota.Config{ClusterQueues: []quota.ClusterQueue{{
				Name: "queue", Strategy: quota.Backfill, Backfill: &quota.BackfillPolicy{Depth: depth},
			}}}))
			enter := func(i int, priority int32, nodes int, run time.Duration) {
				w := &workload.Workload{ID: workload.ID(fmt.Sprintf("gang-%d", i)), Queue: "queue", Priority: priority, PodSets: []workload.PodSet{setOf("workers", nodes, 1, 8)}}
				s.Enqueue(admission.Waiting{Workload: w, Order: int64(i), Since: start, RunTime: run})
			}
			for i := range 100 {
				s.SetNode(nodeOf(fmt.Sprintf("node-%d", i), 96, 8))
				enter(i, 1, 1, time.Duration(i+1)*time.Minute)
			}
			decide(s)
			for i := range 1000 {
				enter(100+i, 0, 2+i%30, time.Duration(1+i%50)*time.Hour)
			}
			decide(s)
			next, last := 10_000, workload.ID("gang-0")
			for b.Loop() {
				s.Leave(last)
				s.Release(last)
				enter(next, 1, 1, time.Hour)
				if plan := decide(s); len(plan.Admissions) != 1 || len(s.HeadReservations()) > depth {
					b.Fatalf("%d admitted, %d reservations", len(plan.Admissions), len(s.HeadReservations()))
				}
				last = workload.ID(fmt.Sprintf("gang-%d", next))
				next++
			}
		})
	}
}

// BenchmarkExplain explains one of many gangs that wait on 5,000 full nodes.
func BenchmarkExplain(b *testing.B) {
	for _, waiting := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("waiting=%d", waiting), func(b *testing.B) {
			s := crowd(b, waiting)
			for b.Loop() {
				if e, waits := admission.Explain(s, "gang-5010", start); !waits || len(e.Changes) == 0 {
					b.Fatalf("it is explained by %+v", e)
				}
			}
		})
	}
}

// BenchmarkWaiting measures the heap in use for 100,000 that wait.
func BenchmarkWaiting(b *testing.B) {
	for b.Loop() {
		var before, after runtime.MemStats
		empty := crowd(b, 0)
		runtime.GC()
		runtime.ReadMemStats(&before)
		full := crowd(b, 100_000)
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB-of-5000-nodes-and-100000-waiting")
		runtime.KeepAlive(empty)
		runtime.KeepAlive(full)
	}
}

// BenchmarkPreemption is a decision that evicts three of 5,000 gangs on 5,000
// nodes: alone, with others waiting that may evict the same and have no places
// even then, and with heads with reservations. Time passes between decisions, as it does for a
// queue whose searches are put off when it has used up its steps.
func BenchmarkPreemption(b *testing.B) {
	for _, c := range []struct{ others, heads int }{{0, 0}, {5, 0}, {50, 0}, {0, 20}, {50, 20}} {
		b.Run(fmt.Sprintf("others=%d/heads=%d", c.others, c.heads), func(b *testing.B) {
			evicting(b, c.others, c.heads)
		})
	}
}

func evicting(b *testing.B, others, heads int) {
	queues := []string{gpuQueue("a", -1, `"withinClusterQueue": "LowerPriority"`)}
	for i := range heads {
		queues = append(queues, fmt.Sprintf(`{"name": "head-%d", "queueingStrategy": "Backfill", "quotaCheckStrategy": "IgnoreUndeclared"}`, i))
	}
	s := admission.NewState(treeOf(b, gpuPolicy(b, false, queues...)))
	enter := func(i int, queue string, priority int32, sets []workload.PodSet) {
		w := &workload.Workload{ID: workload.ID(fmt.Sprintf("gang-%d", i)), Queue: queue, Priority: priority, PodSets: sets}
		s.Enqueue(admission.Waiting{Workload: w, Order: int64(i), Since: start, RunTime: 2 * time.Hour})
	}
	for i := range 5000 {
		s.SetNode(nodeOf(fmt.Sprintf("node-%d", i), 96, 8))
		enter(i, "a", 0, []workload.PodSet{setOf("workers", 1, 1, 8)})
	}
	decide(s)
	for i := range heads {
		enter(5000+i, fmt.Sprintf("head-%d", i), 0, []workload.PodSet{setOf("workers", 2, 1, 8)})
	}
	for i := range others {
		enter(6000+i, "a", 5, []workload.PodSet{setOf("workers", 1, 1, int64(9+i))})
	}
	now, order := start.Add(time.Hour), 10_000
	admission.Decide(s, now)
	for b.Loop() {
		enter(order, "a", 9, []workload.PodSet{setOf("workers", 3, 1, 8)})
		plan := admission.Decide(s, now)
		b.StopTimer()
		if len(plan.Evictions) != 3 {
			b.Fatalf("%d evicted, want 3", len(plan.Evictions))
		}
		for _, v := range plan.Evictions {
			s.Release(v.Workload)
		}
		admission.Decide(s, now)
		now = now.Add(time.Minute)
		order++
		b.StartTimer()
	}
}
