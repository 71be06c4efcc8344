package app_test

import (
	"math"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// TestLiesOfAnotherCluster: whatever the keys of another cluster publish on their own
// subjects, the gangs of this one go on, and no term ends.
func TestLiesOfAnotherCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("a", 4)
	running := w.submit(gangOf("running", "default", 1))
	w.command(running, event.Present, 1)
	epoch := w.epoch()

	const other = "other"
	now := event.Version{Session: time.Now().UnixNano(), Seq: 1}
	node := func(in, name string, v event.Version, change func(*capacity.Node)) *event.NodeObserved {
		n := capacity.Node{Cluster: in, Name: name, Ready: false, Allocatable: resource.List{"cpu": 1, "pods": 1}}
		if change != nil {
			change(&n)
		}
		return &event.NodeObserved{Version: v, Node: n}
	}
	at := event.NodeSubject(other, "a")
	w.publish(at, &event.NodeRemoved{Version: now, Cluster: cluster, Node: "a"})
	w.publish(at, node(cluster, "a", now, nil))
	w.publish(event.SyncedSubject(other), &event.CapacitySynced{Version: now, Cluster: cluster})
	w.publish(event.StatusSubject(other, running), &event.GangStatus{Workload: running, Cluster: cluster, Attempt: 1, Gone: true, Released: true})
	w.publish(event.StatusSubject(other, running), &event.GangStatus{Workload: running, Cluster: other, Attempt: 1, Gone: true, Released: true, Session: math.MaxInt64})
	w.publish(event.GangSubject(other, running), &event.GangObserved{Version: now, Cluster: cluster, Workload: running})
	for name, change := range map[string]func(*capacity.Node){
		"negative": func(n *capacity.Node) { n.Allocatable["cpu"] = math.MinInt64 },
		"absurd":   func(n *capacity.Node) { n.Allocatable["cpu"] = math.MaxInt64 },
		"nul":      func(n *capacity.Node) { n.Labels = map[string]string{"zone": "a\x00"} },
	} {
		w.publish(event.NodeSubject(other, name), node(other, name, now, change))
	}
	w.publish(event.NodeSubject(other, "seq"), node(other, "seq", event.Version{Session: now.Session, Seq: math.MaxUint64}, nil))
	w.publish(event.NodeSubject(other, "late"), node(other, "late", event.Version{Session: math.MaxInt64}, nil))

	w.command(w.submit(gangOf("after", "default", 1)), event.Present, 1) // on node a, which is there
	w.status(event.GangStatus{Workload: running, Attempt: 1, Created: true})
	w.phase(running, workload.Dispatched)
	if record := w.one(running); record.Phase != workload.Dispatched || !record.Holding {
		t.Errorf("the lies changed the workload: %+v", record)
	}
	if got := w.epoch(); got != epoch {
		t.Errorf("the lies ended a term: epoch %d, before %d", got, epoch)
	}
}
