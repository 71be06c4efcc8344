package state

import (
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

const idleTime = time.Minute

// idleStage has a running cluster that ends when it has been idle for a minute.
// The dispatcher has not reported its sizes yet.
func idleStage(t *testing.T) *stage {
	t.Helper()
	s := newStage(t, workload.Rules{Life: workload.Life{IdleTime: workload.Duration(idleTime)}}, 3)
	s.created(true)
	return s
}

// empties takes all workers away, as Ray's autoscaler does.
func (s *stage) empties() {
	s.sizes(0)
	s.loses("workers", "")
}

// used has an annotation say when the cluster was used last.
func (s *stage) used(at time.Time, workers int) {
	s.sizes(workers, func(status *event.GangStatus) { status.LastUsed = at })
}

// setsTimer checks that time acts by itself at a time, and not before.
func (s *stage) setsTimer(at time.Time) {
	s.Helper()
	if due := s.gang().deadline; !due.Equal(at) {
		s.Fatalf("it is looked at in %s, want in %s", due.Sub(s.now), at.Sub(s.now))
	}
}

func TestAnIdleClusterEndsAfterItsTime(t *testing.T) {
	t.Parallel()
	s := idleStage(t)
	s.empties()
	s.setsTimer(s.now.Add(idleTime))
	s.step(idleTime - time.Nanosecond)
	s.is(workload.Running, "")
	s.step(time.Nanosecond)
	s.is(workload.Cancelling, workload.ReasonIdle)
	if message := s.gang().Reason.Message; !strings.Contains(message, "1m0s") {
		t.Errorf("the reason is %q", message)
	}
}

// The step that ends an idle run says since when it was idle, so that usage can be told apart.
func TestTheEndOfAnIdleRunIsReported(t *testing.T) {
	t.Parallel()
	s := idleStage(t)
	s.empties()
	since := s.now
	s.Flush()
	s.step(idleTime)
	s.is(workload.Cancelling, workload.ReasonIdle)
	history := s.Flush().History
	if len(history) == 0 || history[0].Usage == nil || !history[0].Usage.IdleSince.Equal(since) {
		t.Errorf("the history is %+v, want it idle since %s", history, since)
	}
}

// What a cluster does ends the count, and idling begins again.
func TestActivityEndsIdling(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(*stage){
		"a pod is wanted":        func(s *stage) { s.sizes(1) },
		"a pod is there":         func(s *stage) { s.run() },
		"it is reported as used": func(s *stage) { s.used(s.now, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := idleStage(t)
			s.empties()
			s.step(idleTime - time.Second)
			act(s)
			s.step(2 * time.Second)
			s.is(workload.Running, "")
			s.empties()
			s.step(idleTime - 3*time.Second) // since it was used, if that was reported
			s.is(workload.Running, "")
			s.step(3 * time.Second)
			s.is(workload.Cancelling, workload.ReasonIdle)
		})
	}
}

// A cluster of which it is not known whether it works does.
func TestUnknownActivityEndsNothing(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(*stage){
		"no sizes": func(s *stage) { s.loses("workers", "") },
		"no sizes of one group": func(s *stage) {
			s.sizes(0, func(g *event.GangStatus) { g.Sizes, g.Keeps = map[string]int{}, map[string]int{} })
		},
		"pods not seen": func(s *stage) {
			s.State = newTerm(s)
			s.sizes(0)
		},
		"workers":       func(s *stage) { s.sizes(2) },
		"leaving pods":  func(s *stage) { s.sizes(0) }, // they are seen still
		"no idle time":  func(s *stage) { s.rule(workload.Rules{}); s.empties() },
		"not a cluster": func(s *stage) { s.gang().Kind = "RayJob"; s.empties() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := idleStage(t)
			prepare(s)
			for range 10 {
				s.step(idleTime)
				if e := s.gang(); e.Reason != nil && e.Reason.Kind == workload.ReasonIdle {
					t.Fatalf("it is %s because of %+v", e.Phase, e.Reason)
				}
			}
		})
	}
}

// rule changes the rules of the queue.
func (s *stage) rule(rules workload.Rules) {
	queue := s.queues["q"]
	queue.Rules = rules
	s.queues["q"] = queue
}

// newTerm is the state of a leader that takes over.
func newTerm(s *stage) *State {
	stored := Stored{MaxEvent: 1 << 20, Queues: []Queue{s.queues["q"]}, LastOrder: s.lastOrder,
		Workloads: []StoredWorkload{{Record: s.gang().Record, Order: s.gang().order}}}
	for _, key := range s.nodeKeys() {
		stored.Nodes = append(stored.Nodes, StoredNode{Node: s.nodes[key].Node, Version: s.nodes[key].version, Present: true})
	}
	return New(s.epoch+1, stored)
}

// hears has a leader that takes over hear the last words of watcher and
// dispatcher, which were reported earlier.
func (s *stage) hears(pods, sizes time.Time, workers int) {
	s.seq++
	o := &event.GangObserved{Version: event.Version{Session: 1, Seq: s.seq}, Cluster: "c", Workload: gangID}
	for _, pod := range s.pods {
		pod.Attempt = s.gang().Attempt
		o.Pods = append(o.Pods, pod)
	}
	s.Gang(o, pods, s.now)
	s.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: 1, Created: true, Sizes: map[string]int{"workers": workers}}, sizes, s.now)
	s.step(0)
}

// A leader that takes over goes on counting from the last report.
func TestIdlingOutlivesTheLeader(t *testing.T) {
	t.Parallel()
	s := idleStage(t)
	s.empties()
	emptied := s.now
	s.step(20 * time.Second)
	s.State = newTerm(s)
	s.step(10 * time.Second) // it knows nothing yet
	s.is(workload.Running, "")
	s.hears(emptied.Add(time.Second), emptied, 0)
	s.setsTimer(emptied.Add(time.Second + idleTime))
	s.step(emptied.Add(time.Second + idleTime).Sub(s.now))
	s.is(workload.Cancelling, workload.ReasonIdle)
}

// There was no leader for longer than the idle time: what was idle all the while ends, and
// what was used in between does not, because an observation says so.
func TestALongTimeWithoutALeader(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pods, sizes time.Duration // since it was empty, until the last word
		ends        bool
	}{
		"idle all the while":              {0, 0, true},
		"a pod came and went":             {idleTime, 0, false},
		"a size was asked for":            {0, idleTime, false},
		"the dispatcher restarted":        {time.Second, idleTime, false},
		"a clock of theirs is ahead":      {time.Hour, time.Hour, false},
		"both reported it when it was so": {time.Second, 2 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := idleStage(t)
			s.empties()
			emptied := s.now
			s.State = newTerm(s)
			s.now = s.now.Add(idleTime + 10*time.Second)
			s.hears(emptied.Add(c.pods), emptied.Add(c.sizes), 0)
			if !c.ends {
				s.is(workload.Running, "")
				s.step(idleTime)
			}
			s.is(workload.Cancelling, workload.ReasonIdle)
		})
	}
}

// One word that a cluster will be used in a year buys one idle time, and no more
// when another leader hears it again.
func TestAUseToComeIsNotBoughtTwice(t *testing.T) {
	t.Parallel()
	s := idleStage(t)
	year := s.now.Add(365 * 24 * time.Hour)
	s.used(year, 2)
	reported := s.now
	s.step(idleTime / 2)
	s.State = newTerm(s)
	s.seq++
	s.reportUse(year, reported)
	s.step(idleTime / 2)
	s.is(workload.Cancelling, workload.ReasonIdle)
}

func (s *stage) reportUse(used, reported time.Time) {
	s.observe()
	s.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: 1, Created: true, LastUsed: used, Sizes: map[string]int{"workers": 2}}, reported, s.now)
	s.step(0)
}
