package admission_test

import (
	"fmt"
	"testing"

	"muster.dev/muster/pkg/admission"
	"muster.dev/muster/pkg/workload"
)

// BenchmarkDecide decides on one new gang of three pods on 1,000 nodes.
func BenchmarkDecide(b *testing.B) {
	s := admission.NewState()
	for i := range 1000 {
		s.SetNode(nodeOf(fmt.Sprintf("node-%d", i), 96, 8), nil)
	}
	s.Settle()
	enqueue(s, 0, "queue", []workload.PodSet{setOf("head", 1, 2, 0), setOf("workers", 2, 8, 8)})
	for b.Loop() {
		if plan := admission.Decide(s); len(plan.Admissions) != 1 {
			b.Fatalf("not admitted: %+v", plan.Waits)
		}
	}
}
