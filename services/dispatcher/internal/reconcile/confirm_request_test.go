package reconcile

import (
	"context"
	"testing"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// The stream may lose the command that ends a request while the dispatcher does not reach it.
// Nothing sends that command again, because its workload waits without a request, or has ended.
func TestTheSweepEndsRequestsWhoseEndWasLost(t *testing.T) {
	t.Parallel()
	for kind, command := range map[string]*event.GangCommand{"request": provisionCommand(1), "placeholder pods": showCommand("w", 1)} {
		open := &workload.Provisioning{Open: true, Name: command.Provision.Name}
		for name, c := range map[string]struct {
			record *workload.Record
			stays  bool
		}{
			"its workload has ended":  {nil, false},
			"its workload waits":      {&workload.Record{Phase: workload.Queued}, false},
			"it is over":              {&workload.Record{Phase: workload.Queued, Provisioning: &workload.Provisioning{Name: open.Name}}, false},
			"there is another one":    {&workload.Record{Phase: workload.Queued, Provisioning: &workload.Provisioning{Open: true, Name: "another"}}, false},
			"it is open":              {&workload.Record{Phase: workload.Queued, Provisioning: open}, true},
			"its workload is started": {&workload.Record{Phase: workload.Admitted, Holding: true, Attempt: 1, Provisioning: open}, true},
		} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				p := play(t)
				p.Command(command)
				p.lookAt(t, "w")
				made := len(p.cluster.items)
				truth := func(context.Context, workload.ID) (*workload.Record, error) { return c.record, nil }
				p.Sweep(t.Context(), truth)
				p.lookAt(t, "w")
				if left := len(p.cluster.items); made == 0 || left != made {
					t.Fatalf("of %d objects of the request %d are left after one sweep, want all", made, left)
				}
				p.Sweep(t.Context(), truth)
				p.lookAt(t, "w")
				if left := len(p.cluster.items); left == 0 == c.stays {
					t.Errorf("of %d objects of the request %d are left after two sweeps, want them to stay: %t", made, left, c.stays)
				}
			})
		}
	}
}
