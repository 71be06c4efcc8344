package engine

import (
	"fmt"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/event"
)

// checkTold returns an error for an observation or status that its cluster may not
// tell, or that cannot be true. The subject says which cluster tells it: NATS lets the
// keys of a cluster publish to subjects of that cluster only, and checks nothing else.
func checkTold(d bus.Delivery, payload event.Payload, now time.Time) error {
	var want string
	switch p := payload.(type) {
	case *event.NodeObserved:
		want = bus.NodeSubject(p.Node.Cluster, p.Node.Name)
	case *event.NodeRemoved:
		want = bus.NodeSubject(p.Cluster, p.Node)
	case *event.CapacitySynced:
		want = bus.SyncedSubject(p.Cluster)
	case *event.GangObserved:
		want = bus.GangSubject(p.Cluster, p.Workload)
	case *event.GangStatus:
		want = bus.StatusSubject(p.Cluster, p.Workload)
	}
	if d.Subject != want {
		return fmt.Errorf("a %s event about %.200q came on another subject than its own, %.200q", payload.EventType(), payload.EventSubject(), want)
	}
	return event.CheckTold(payload, now)
}
