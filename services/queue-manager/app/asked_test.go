package app_test

import (
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/app"
)

// TestTheLastRequestIsKeptForTheNextLeader: Postgres has which request came last, and the
// next leader reads it with the workload.
func TestTheLastRequestIsKeptForTheNextLeader(t *testing.T) {
	t.Parallel()
	w := newWorld(t, app.Queue{Name: "research", Namespaces: []string{"default"}})
	id := w.submit(gangOf("asked", "research", 1))
	w.waits(id, workload.ReasonNoNodes)
	w.publish(event.WorkloadSubject("research"), &event.WorkloadPriority{Workload: id, Priority: 3, By: "ann@ops"})
	w.nodes("the priority is stored", func([]query.Node) bool { return w.recordOf(id).Priority == 3 })
	asked := func() (sequence, stored string) {
		w.scan(`SELECT asked->'priority'->>'sequence', asked->'priority'->>'stored' FROM workloads`, &sequence, &stored)
		return sequence, stored
	}
	sequence, stored := asked()
	if at, err := time.Parse(time.RFC3339Nano, stored); err != nil || sequence != "2" || time.Since(at) > time.Minute {
		t.Errorf("the last priority is request %s of %s, %v; want the second message", sequence, stored, err)
	}
	w.stop()
	w.start()
	w.publish(event.WorkloadSubject("research"), &event.WorkloadHold{Workload: id, By: "ann@ops"})
	w.waits(id, workload.ReasonHeld)
	if after, _ := asked(); after != sequence {
		t.Errorf("after another leader took in a hold the last priority is request %q, want %s", after, sequence)
	}
	w.checkReplay()
}
