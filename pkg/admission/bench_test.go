package admission_test

import (
	"fmt"
	"testing"

	"muster.dev/muster/pkg/admission"
	"muster.dev/muster/pkg/workload"
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
