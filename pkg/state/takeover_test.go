package state

import (
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// replaceLeader goes on with the state of a new term, which has what the last one has
// committed, reads the newest observations again, and begins to decide.
func (s *stage) replaceLeader(observed ...func()) {
	s.Helper()
	s.Flush()
	stored := s.Settings()
	for _, e := range s.inOrder() {
		w := StoredWorkload{Record: e.Record, Order: e.order}
		if e.attemptState != nil {
			w.HeardAgain = e.heardAgain
		}
		stored.Workloads = append(stored.Workloads, w)
	}
	for _, key := range s.nodeKeys() {
		n := s.nodes[key]
		stored.Nodes = append(stored.Nodes, StoredNode{n.Node, n.version, n.present})
	}
	s.State = New(s.epoch+1, stored)
	s.CatchUp()
	for _, observe := range observed {
		observe()
	}
	s.BeginDecisions(s.now)
	s.step(0)
}

// A term may end after it has stored that a node cannot keep its pods, and before it
// replaces the places there. The next one replaces them.
func TestANewTermReplacesThePlacesThatTheLastOneFoundLost(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(s *stage, node string){
		"gone":      func(s *stage, n string) { s.removeNode(n) },
		"cordoned":  func(s *stage, n string) { s.node(n, func(n *capacity.Node) { n.Cordoned = true }) },
		"not ready": func(s *stage, n string) { s.node(n, func(n *capacity.Node) { n.Ready = false }) },
		"taken":     func(s *stage, n string) { s.node(n, func(n *capacity.Node) { n.Unmanaged = resource.List{"cpu": 1} }) },
		"drained": func(s *stage, n string) {
			s.node(n, func(n *capacity.Node) { n.Taints = []capacity.Taint{{Key: capacity.DrainTaint, Effect: "NoSchedule"}} })
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, workload.Rules{}, 3)
			s.created(false)
			s.node("spare", nil)
			lost := s.place("workers")
			s.CatchUp() // the last term has not decided either
			lose(s, lost)
			again := func() { // as old news
				s.seq--
				lose(s, lost)
			}
			s.replaceLeader(again)
			s.step(settleTime)
			s.is(workload.Dispatched, "")
			if slices.ContainsFunc(s.gang().Placements, func(p workload.Placement) bool { return p.Node == lost }) {
				t.Errorf("%s: the gang keeps its place on %s", name, lost)
			}
		})
	}
}

// A running gang has been promised time before its pods leave a drained node. A new
// leader keeps that promise, and does not begin it again.
func TestANewTermKeepsTheTimeOfAnAnnouncedMove(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{Life: workload.Life{CheckpointGrace: seconds(30)}}, 3)
	s.created(true)
	s.node("spare", nil)
	node := s.place("workers")
	s.node(node, func(n *capacity.Node) { n.Taints = []capacity.Taint{{Key: capacity.DrainTaint, Effect: "NoSchedule"}} })
	s.is(workload.Running, workload.ReasonDrained)
	s.step(10 * time.Second)
	s.replaceLeader(func() { s.created(false) }, s.observe)
	if command := s.commanded(); command != nil {
		t.Errorf("the new term announces it again: %+v", command)
	}
	s.step(19 * time.Second)
	s.is(workload.Running, workload.ReasonDrained)
	if s.place("workers") != node {
		t.Fatal("the pods are moved before the time that was announced")
	}
	s.step(time.Second)
	s.is(workload.Running, workload.ReasonPodLost)
	if command := s.commanded(); command == nil || command.State != event.Present || s.place("workers") == node {
		t.Errorf("at the announced time the place is %s, commanded %+v", s.place("workers"), command)
	}
}

// A gang that waits for nodes gives way when its namespace gets defaults with which it asks for
// more than its queue may use. It holds no quota then, so others start.
func TestAnAskerGivesWayWhereDefaultsGrow(t *testing.T) {
	t.Parallel()
	a := newAskerQueue(t)
	limited := func(cores int64) {
		a.seq++
		a.Namespace(&event.NamespaceObserved{
			Version: event.Version{Session: 1, Seq: a.seq}, Cluster: "c", Namespace: "ns", Defaults: resource.List{"cpu": cores},
		}, a.now)
		a.step(0)
	}
	limited(2)
	a.submit(workload.Template{
		Requests: resource.List{"cpu": 1, "pods": 1}, Unset: workload.Unset{"cpu": {{Base: 1, Times: 1}}},
	})
	a.wantSent("provision " + requestOne)
	used := func() int64 { return a.admission.Quota().Queue("q").Used()["cpu"] }
	limited(3)
	a.wantPhase(workload.Queued, workload.ReasonProvisioning)
	if used() != 8 {
		t.Errorf("within quota it holds %d cores, want 8", used())
	}
	limited(4)
	if used() != 0 {
		t.Errorf("beyond quota it holds %d cores, want none", used())
	}
	a.wantSent("forgotten " + requestOne)
	a.step(0)
	a.wantPhase(workload.Queued, workload.ReasonNeverFits)
	limited(3)
	a.wantPhase(workload.Queued, workload.ReasonProvisioning)
	if used() != 8 {
		t.Errorf("with smaller defaults it holds %d cores, want 8", used())
	}
}

// A gang that waits for nodes holds the quota of what its pods ask for by default. A new
// leader takes that quota before it has read the defaults, and again with them.
func TestANewLeaderHoldsTheQuotaOfDefaults(t *testing.T) {
	t.Parallel()
	a := newAskerQueue(t)
	limited := func() {
		a.seq++
		a.Namespace(&event.NamespaceObserved{
			Version: event.Version{Session: 1, Seq: a.seq}, Cluster: "c", Namespace: "ns", Defaults: resource.List{"cpu": 3},
		}, a.now)
	}
	limited()
	a.submit(workload.Template{
		Requests: resource.List{"cpu": 1, "pods": 1}, Unset: workload.Unset{"cpu": {{Base: 1, Times: 1}}},
	})
	for _, term := range []string{"first", "next"} {
		a.wantPhase(workload.Queued, workload.ReasonProvisioning)
		if used := a.admission.Quota().Queue("q").Used()["cpu"]; used != 8 {
			t.Errorf("in the %s term it holds %d cores, want 8", term, used)
		}
		if why := a.gang().Reason.Message; !strings.Contains(why, "2 of workers") {
			t.Errorf("in the %s term the reason is %q", term, why)
		}
		a.replaceLeader(limited)
	}
	a.nodesCome()
	a.answers("rayjob-job-50e72-nodes-1", event.RequestProvisioned)
	a.wantPhase(workload.Admitted, "")
	if got := a.gang().PodSets[0].Template.Requests["cpu"]; got != 4 {
		t.Errorf("its pods ask for %d cores, want 4", got)
	}
}
