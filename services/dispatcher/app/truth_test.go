package app

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/spec/workload"
)

// A workload that queue-manager has started in another cluster has nothing to keep in this
// one, as after a move that a restored database does not know. Nothing else of it changes.
func TestAWorkloadOfAnotherClusterHoldsNothingHere(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		record workload.Record
		want   bool
	}{
		"it holds places here":            {workload.Record{Cluster: "here", Attempt: 2, Holding: true}, true},
		"it holds places elsewhere":       {workload.Record{Cluster: "elsewhere", Attempt: 2, Holding: true}, false},
		"it waits":                        {workload.Record{Attempt: 2, Provisioning: &workload.Provisioning{Name: "r", Open: true}}, false},
		"it was here, and all is gone":    {workload.Record{Cluster: "here", Attempt: 2, Phase: workload.Succeeded}, false},
		"it ends elsewhere, not yet over": {workload.Record{Cluster: "elsewhere", Attempt: 2, Phase: workload.Cancelling, Holding: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := c.record
			want.Holding = c.want
			if diff := cmp.Diff(want, heldIn("here", c.record)); diff != "" {
				t.Errorf("the record differs (-want +got):\n%s", diff)
			}
		})
	}
}
