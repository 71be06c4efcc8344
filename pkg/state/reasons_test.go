package state

import (
	"testing"

	"muster.dev/muster/pkg/spec/workload"
)

// What matters more to the owner of a running gang stays: of two kinds only one may be set
// in place of the other, and what ends or starts a gang is in no list.
func TestReasonsOfRunningGangsHaveAnOrder(t *testing.T) {
	t.Parallel()
	for kind, others := range replaceable {
		for _, other := range others {
			if _, running := replaceable[other]; !running {
				t.Errorf("%s may be set in place of %s, which is no reason of this list", kind, other)
			}
			if e := (&entry{Record: workload.Record{Reason: &workload.Reason{Kind: kind}}}); other != kind && mayExplain(e, other) {
				t.Errorf("%s and %s may be set in place of each other", kind, other)
			}
		}
		if !mayExplain(&entry{}, kind) {
			t.Errorf("%s may not be set on a gang without a reason", kind)
		}
	}
}
