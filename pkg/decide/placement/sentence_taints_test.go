package placement

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/spec/capacity"
)

// TestTaintsAreNamed: the most frequent taints are named as kube-scheduler names them.
func TestTaintsAreNamed(t *testing.T) {
	t.Parallel()
	counts := map[string]int{"cordoned": 1}
	nameTaints(counts, map[capacity.Taint]int{
		{Key: capacity.DrainTaint, Effect: "NoSchedule"}: 1, {Key: capacity.DrainTaint, Effect: "NoExecute"}: 2,
		{Key: "a", Value: "b"}: 9, {Key: "c"}: 8, {Key: "d"}: 7, {Key: "e"}: 2, {Key: "f"}: 1,
	})
	want := []string{
		"1 node(s) were unschedulable", "3 node(s) had untolerated taint", "9 node(s) had untolerated taint {a: b}",
		"8 node(s) had untolerated taint {c: }", "7 node(s) had untolerated taint {d: }", "3 node(s) had untolerated taint {muster.dev/drain: }",
	}
	if diff := cmp.Diff(want, causes(counts)); diff != "" {
		t.Errorf("the causes are (-want +got):\n%s", diff)
	}
}
