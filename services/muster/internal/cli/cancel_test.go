package cli

import (
	"testing"

	"muster.dev/muster/pkg/spec/workload"
)

// TestTheKeptObjectIsNamed: of an ended workload the command is given that removes its object.
func TestTheKeptObjectIsNamed(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{
		workload.KindRayJob:     "; an object that is kept of it goes by: kubectl delete rayjob -n lab train",
		workload.KindAppWrapper: "",
	} {
		if got := keptObject(workload.Workload{Kind: kind, Namespace: "lab", Name: "train"}); got != want {
			t.Errorf("of %s it says %q, want %q", kind, got, want)
		}
	}
}
