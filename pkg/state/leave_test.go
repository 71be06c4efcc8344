package state

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// leave has cluster c of the stage leave.
func (s *stage) leave(forced bool) {
	s.configure(quota.ClusterCordon{Name: "c", Since: s.now, By: "ann", Why: "it burns", Drain: true, Left: true, Forced: forced})
}

func (s *stage) configure(cordons ...quota.ClusterCordon) {
	s.ApplyConfiguration([]Queue{s.queues["q"]}, quota.Config{ClusterCordons: cordons}, s.Version()+1)
	s.step(time.Second)
}

// present counts the nodes that are there.
func (s *stage) present() int {
	present := 0
	for _, n := range s.nodes {
		if n.present {
			present++
		}
	}
	return present
}

// A cluster that leaves keeps the nodes of its gang until that has given up its places, and
// what it reports afterwards does not count, until it joins again.
func TestAClusterThatLeavesIsForgotten(t *testing.T) {
	t.Parallel()
	s := newStage(t, workload.Rules{}, 4)
	s.created(true)
	s.step(0)
	s.leave(false)
	if got := s.present(); got != 3 {
		t.Errorf("%d nodes are there while the gang holds places, want its 3", got)
	}
	s.is(workload.Evicting, workload.ReasonDrained)
	s.released()
	s.step(time.Second)
	if got := s.present(); got != 0 {
		t.Errorf("%d nodes are there after the gang has gone, want none", got)
	}
	s.node("n0", nil)
	if got := s.present(); got != 0 {
		t.Errorf("%d nodes are there after a report of the cluster that has left, want none", got)
	}
	s.configure()
	for _, name := range []string{"n0", "n1", "n2"} {
		s.node(name, nil)
	}
	s.step(time.Second)
	if s.gang().Phase != workload.Admitted || s.gang().Attempt != 2 {
		t.Errorf("after it has joined again the gang is %s in attempt %d", s.gang().Phase, s.gang().Attempt)
	}
}

// A cluster that leaves by force keeps no gang: each starts again, and the cluster is
// commanded to remove what it has. What it reports of the old attempt changes nothing.
func TestAClusterThatLeavesByForceKeepsNoGang(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(*stage)
		kind   workload.ReasonKind
		want   []string
	}{
		"admitted": {func(*stage) {}, workload.ReasonClusterLost, []string{`cluster "c" has left`, "it burns"}},
		"running":  {func(s *stage) { s.created(true); s.step(0) }, workload.ReasonClusterLost, []string{`cluster "c" has left`, "it burns"}},
		"evicting": {func(s *stage) {
			s.created(true)
			s.evictNow(s.gang(), &workload.Reason{Kind: workload.ReasonPreempted, Message: "for another"}, s.now)
		}, workload.ReasonPreempted, []string{"for another"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, workload.Rules{}, 4)
			c.before(s)
			s.Flush()
			s.leave(true)
			e := s.gang()
			if e.Phase != workload.Queued || e.Attempt != 2 || e.Holding || e.Cluster != "" || s.present() != 0 {
				t.Fatalf("the gang is %s in attempt %d of cluster %q, holding %t, %d nodes", e.Phase, e.Attempt, e.Cluster, e.Holding, s.present())
			}
			var last *event.GangCommand
			steps := s.Flush()
			for _, m := range steps.Messages {
				if c, is := m.Payload.(*event.GangCommand); is && m.Subject == event.DispatchSubject("c", gangID) {
					last = c
				}
			}
			if last == nil || last.State != event.Absent || last.Attempt != 1 {
				t.Errorf("the last command to the cluster is %+v, want the removal of attempt 1", last)
			}
			got := ""
			for _, h := range steps.History {
				if h.Reason != nil && h.Reason.Kind == c.kind {
					got = h.Reason.Message
				}
			}
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("the history says %q, want %q in it", got, want)
				}
			}
			s.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: 1, Created: true, Gone: true, Released: true}, s.now, s.now)
			if e := s.gang(); e.Phase != workload.Queued || e.Attempt != 2 {
				t.Errorf("after the removal of the old attempt the gang is %s in attempt %d", e.Phase, e.Attempt)
			}
			if illegal := s.DrainIllegalTransitions(); len(illegal) > 0 {
				t.Errorf("illegal transitions: %+v", illegal)
			}
		})
	}
}

// An eviction without a next attempt stays one when the cluster leaves by force.
func TestAFinalEvictionEndsWhenItsClusterIsLost(t *testing.T) {
	t.Parallel()
	for _, kind := range []workload.ReasonKind{workload.ReasonExitCode, workload.ReasonCheckRejected} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := newStage(t, workload.Rules{}, 4)
			s.created(true)
			s.evictNow(s.gang(), &workload.Reason{Kind: kind, Message: "no more"}, s.now)
			s.Flush()
			s.leave(true)
			if e := s.live.Get(gangID); e != nil {
				t.Fatalf("the gang is %s because of %+v, want its end", e.Phase, e.Reason)
			}
			history := s.Flush().History
			if len(history) == 0 {
				t.Fatal("the history has no end")
			}
			if last := history[len(history)-1]; last.Phase != workload.Failed || last.Reason == nil || last.Reason.Kind != kind {
				t.Errorf("it ended as %s because of %+v, want %s because of %s", last.Phase, last.Reason, workload.Failed, kind)
			}
		})
	}
}

// A waiting workload of which a lost attempt is removed in a cluster does not wait for that
// when the cluster leaves by force, nor when it has left by then. The cluster is commanded to
// remove the attempt all the same.
func TestNoRemovalInALostClusterIsWaitedFor(t *testing.T) {
	t.Parallel()
	later := &event.GangCommand{Workload: gangID, Cluster: "c", Attempt: 3, State: event.Present, Queue: "q", Kind: "RayCluster", Name: "gang"}
	for name, lose := range map[string]func(*stage){
		"it leaves during the removal": func(s *stage) {
			s.status(1, func(g *event.GangStatus) { g.Created, g.Later = true, 3 })
			s.is(workload.Queued, workload.ReasonRestored)
			s.Flush()
			s.leave(true)
		},
		"it had left before the restoration": func(s *stage) {
			s.leave(true)
			s.Ahead(Ahead{Commands: []*event.GangCommand{later}}, s.now)
			s.step(time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, workload.Rules{}, 3)
			s.created(true)
			lose(s)
			e := s.gang()
			if e.Phase != workload.Queued || e.Cluster != "" || e.Attempt != 4 || len(s.removals.removing) != 0 {
				t.Fatalf("the gang is %s in attempt %d of cluster %q, and %d are removed", e.Phase, e.Attempt, e.Cluster, len(s.removals.removing))
			}
			if last := s.commanded(); last == nil || last.State != event.Absent || last.Attempt != 3 || last.Cluster != "c" {
				t.Errorf("commanded is %+v, want attempt 3 absent", last)
			}
			for i := range 3 {
				s.seq++
				s.Node(&event.NodeObserved{Version: event.Version{Session: 1, Seq: s.seq}, Node: capacity.Node{
					Cluster: "d", Name: fmt.Sprintf("n%d", i), Ready: true, Allocatable: resource.List{"cpu": 4, "pods": 10},
				}}, s.now)
			}
			s.step(time.Second)
			if e := s.gang(); e.Phase != workload.Admitted || e.Cluster != "d" || e.Attempt != 4 {
				t.Errorf("the gang is %s in attempt %d of cluster %q, want it admitted in d", e.Phase, e.Attempt, e.Cluster)
			}
		})
	}
}

// One Tick releases the places of a bounded number of gangs in a cluster that leaves by force,
// those submitted first before others, and the next ones the rest: a commit stays small.
func TestPlacesInALostClusterAreReleasedSomeAtATime(t *testing.T) {
	t.Parallel()
	const gangs = 2*releasedAtOnce + 10
	s := newStage(t, workload.Rules{}, gangs+3)
	for i := range gangs {
		s.Submit(&event.WorkloadSubmitted{Manifest: json.RawMessage(`{}`), Workload: workload.Workload{
			ID: workload.ID(fmt.Sprintf("g%03d", i)), Queue: "q", Kind: "RayCluster", Name: fmt.Sprintf("g%d", i),
			PodSets: []workload.PodSet{podSet("headgroup", workload.RoleHead, 1)},
		}}, nil, s.now)
	}
	s.step(0)
	holding := func() (n int, last workload.ID) {
		for _, e := range s.startedInOrder() {
			if e.Holding {
				n++
				last = e.ID
			}
			if e.Holding && e.Phase != workload.Admitted {
				t.Errorf("gang %s is %s, want it as it was until its places are released", e.ID, e.Phase)
			}
		}
		return n, last
	}
	if n, _ := holding(); n != gangs+1 {
		t.Fatalf("%d gangs are admitted, want %d", n, gangs+1)
	}
	s.leave(true)
	for _, want := range []int{gangs + 1 - releasedAtOnce, gangs + 1 - 2*releasedAtOnce, 0} {
		n, last := holding()
		if n != want || n > 0 && last != workload.ID(fmt.Sprintf("g%03d", gangs-1)) {
			t.Fatalf("%d gangs have places, the last is %s; want %d, the last submitted among them", n, last, want)
		}
		s.step(time.Second)
	}
	if got := s.present(); got != 0 {
		t.Errorf("%d nodes are there after all gangs have gone, want none", got)
	}
}
