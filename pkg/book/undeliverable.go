package book

import (
	"time"

	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/workload"
)

// Undeliverable ends a workload whose command to start cannot be sent, ever. A
// dispatcher has not seen it, so there is nothing to tear down.
func (b *Book) Undeliverable(id workload.ID, why string, now time.Time) {
	e := b.live.Get(id)
	if e == nil || e.Phase != workload.Admitted {
		return
	}
	b.status(&event.GangStatus{
		Workload: id, Cluster: e.Cluster, Attempt: e.Attempt, Refused: true,
		Message: "the command to start it cannot be sent: " + why,
	}, now, now)
}
