package state

import (
	"fmt"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// BenchmarkHoldOfALongQueue holds a queue in which 100,000 workloads wait, and ends the hold.
// It reports how long the longest step of the leader takes, how many rows of history the
// largest commit has, and how many steps there are.
func BenchmarkHoldOfALongQueue(b *testing.B) {
	const waiting = 100_000
	queues := []Queue{{Name: "q", Namespaces: []string{"n"}}}
	stored := Stored{MaxEvent: 1 << 20, Queues: queues}
	sets := []workload.PodSet{{Name: "headgroup", Role: workload.RoleHead, Count: 1, Template: workload.Template{Requests: resource.List{"cpu": 1000, "pods": 1}}}}
	for i := range waiting {
		stored.Workloads = append(stored.Workloads, StoredWorkload{Order: int64(i + 1), Record: workload.Record{
			Workload: workload.Workload{
				ID: workload.ID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)), Queue: "q", Namespace: "n", Kind: workload.KindRayCluster,
				Name: fmt.Sprintf("w%d", i), PodSets: sets,
			},
			Phase: workload.Queued, Attempt: 1, Reason: &workload.Reason{Kind: workload.ReasonNoNodes, Message: "no cluster has reported a node yet"},
		}})
	}
	s := New(1, stored)
	now := time.Unix(1_000_000, 0).UTC()
	held := quota.Config{Holds: []quota.QueueStop{{Name: "q", By: "ann", Since: now}}}
	var longest time.Duration
	var rows, steps int
	step := func(do func()) {
		began := time.Now()
		do()
		s.Decide(now)
		changes := s.Flush()
		longest, rows, steps = max(longest, time.Since(began)), max(rows, len(changes.History)), steps+1
		now = now.Add(time.Millisecond)
	}
	all := func(do func()) {
		for step(do); s.ReportsLeft(); {
			step(func() {})
		}
	}
	all(func() {})
	b.ResetTimer()
	longest, rows, steps = 0, 0, 0
	for range b.N {
		all(func() { s.ApplyConfiguration(queues, held, s.version+1) })
		all(func() { s.ApplyConfiguration(queues, quota.Config{}, s.version+1) })
	}
	b.ReportMetric(float64(longest.Milliseconds()), "ms-longest-step")
	b.ReportMetric(float64(rows), "rows-largest-commit")
	b.ReportMetric(float64(steps)/float64(b.N), "steps/op")
}
