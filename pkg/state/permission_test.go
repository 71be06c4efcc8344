package state

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
)

const (
	silentFor = 45 * time.Second
	lasts     = 2 * time.Minute
)

// newPermitted has a gang that fails over, created with or without the mark of the permission.
func newPermitted(t *testing.T, rule string, marked bool) *stage {
	t.Helper()
	s := newStage(t, workload.Rules{OnLostCluster: rule}, 4)
	s.SetSilentAfter(silentFor)
	s.begun = s.now
	s.status(1, func(g *event.GangStatus) { g.Session, g.Created, g.Permitted = 1, true, marked })
	s.ask(1, 1)
	s.Flush()
	return s
}

func (s *stage) ask(session, number int64) {
	s.PermissionAsked(&event.PermissionAsked{Cluster: "c", Session: session, Number: number, For: workload.Duration(lasts)}, s.now)
}

// failedOver reports whether the gang lost its places with its cluster and has its next attempt.
func (s *stage) failedOver() bool { return s.gang().Attempt == 2 }

// A gang of a lost cluster starts elsewhere once its permission and the margin have run out:
// never before that, and never in a queue whose gangs stay.
func TestAGangFailsOverWhenItsPermissionHasRunOut(t *testing.T) {
	t.Parallel()
	const by = lasts + lasts/driftOf + stopMargin
	s := newPermitted(t, workload.FailOver, true)
	s.step(by - time.Second)
	if s.failedOver() {
		t.Fatal("the gang failed over a second before it had to be stopped")
	}
	s.step(time.Second)
	e := s.gang()
	if !s.failedOver() || e.Holding || e.Phase != workload.Queued {
		t.Fatalf("the gang is %s in attempt %d, holding %t", e.Phase, e.Attempt, e.Holding)
	}
	changes := s.Flush()
	reason, removed, withdrawn := "", false, false
	for _, h := range changes.History {
		if h.Reason != nil && h.Reason.Kind == workload.ReasonClusterLost {
			reason = h.Reason.Message
		}
	}
	for _, m := range changes.Messages {
		c, is := m.Payload.(*event.GangCommand)
		removed = removed || is && c.State == event.Absent && c.Attempt == 1 && m.Subject == event.DispatchSubject("c", gangID)
		g, is := m.Payload.(*event.PermissionGranted)
		withdrawn = withdrawn || is && g.For == 0 && m.Subject == event.PermissionSubject("c")
	}
	if !strings.Contains(reason, "permission") || !removed || !withdrawn {
		t.Errorf("the reason is %q; the removal of attempt 1 was commanded: %t; that the gangs have failed over was published: %t", reason, removed, withdrawn)
	}
	returns := func(want bool) {
		t.Helper()
		if c := s.ClusterLoads()[0]; c.Returning != want {
			t.Errorf("the cluster returns: %t, want %t", c.Returning, want)
		}
	}
	returns(false)
	s.node("n0", nil) // the watcher is back, and the dispatcher is not
	s.step(time.Second)
	returns(true)
	s.is(workload.Queued, "")
	if why := s.gang().Reason.Message; !strings.Contains(why, `cluster "c" is back, and has not yet reported that nothing is left there`) {
		t.Errorf("the gang waits: %s", why)
	}
	s.ask(1, 2)
	s.step(time.Second)
	s.is(workload.Admitted, "")
	returns(false)
}

// A cluster whose gangs have failed over gets gangs again when a later dispatcher reports, which may be
// one that does not ask, and once it was removed and has joined again.
func TestAReinstalledClusterGetsGangsAgain(t *testing.T) {
	t.Parallel()
	for name, back := range map[string]func(*stage){
		"a later dispatcher reports": func(s *stage) { s.dispatchers["c"] = 2 },
		"it leaves": func(s *stage) {
			s.configure(quota.ClusterCordon{Name: "c", Since: s.now, By: "ann", Drain: true, Left: true})
			s.configure()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newPermitted(t, workload.FailOver, true)
			s.step(lasts + lasts/driftOf + stopMargin)
			s.step(time.Second)
			s.node("n0", nil)
			s.step(time.Second)
			s.is(workload.Queued, "")
			back(s)
			for i := range 4 {
				s.node(fmt.Sprintf("n%d", i), nil)
			}
			s.step(time.Second)
			if got := s.gang().Phase; got != workload.Admitted {
				t.Errorf("the gang is %s", got)
			}
		})
	}
}

// A cluster from which no gang has failed over gets gangs as soon as its watcher is back: its
// dispatcher has nothing to stop, and may not ask for a permission for days.
func TestAClusterThatWasIdleIsNotBarred(t *testing.T) {
	t.Parallel()
	const by = lasts + lasts/driftOf + stopMargin
	idle := func(t *testing.T, rule string) *stage { // the gang needs three nodes
		s := newStage(t, workload.Rules{OnLostCluster: rule}, 1)
		s.SetSilentAfter(silentFor)
		s.begun = s.now
		s.ask(1, 1)
		return s
	}
	for name, begin := range map[string]func(*testing.T) *stage{
		"no gang was there":  func(t *testing.T) *stage { return idle(t, workload.StayInLostCluster) },
		"a gang there stays": func(t *testing.T) *stage { return newCommanded(t, workload.StayInLostCluster) },
		"a gang was commanded, and never permitted": func(t *testing.T) *stage {
			s := idle(t, workload.FailOver)
			for range 2 * by / silentFor { // its dispatcher has nothing to report
				s.step(silentFor / 2)
				s.node("n0", nil)
			}
			s.node("n1", nil)
			s.node("n2", nil)
			s.step(0)
			s.is(workload.Admitted, "")
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t)
			s.step(by)
			s.step(by)
			for i := range 5 {
				s.node(fmt.Sprintf("n%d", i), nil)
			}
			s.submitOther()
			s.step(time.Second)
			if other := s.live.Get("other"); other.Phase != workload.Admitted {
				t.Errorf("the other gang is %s because of %+v", other.Phase, other.Reason)
			}
		})
	}
}

// A new leader knows that a cluster is returning, whether its dispatcher asked while there was no
// leader or not, and lets gangs in once it has answered the dispatcher.
func TestANewLeaderKnowsThatAClusterReturns(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		forgotten bool
		asked     []int64 // by dispatchers of these sessions, while there was no leader
		returns   bool
	}{
		"nothing has failed over":                    {forgotten: true},
		"the dispatcher has not asked":               {returns: true},
		"the dispatcher asked without an answer":     {asked: []int64{1}, returns: true},
		"a later dispatcher asked without an answer": {asked: []int64{1, 2}, returns: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newPermitted(t, workload.FailOver, true)
			s.step(lasts + lasts/driftOf + stopMargin)
			if !s.failedOver() {
				t.Fatal("the gang has not failed over")
			}
			var remembered []FailedOver
			for _, f := range s.State.failedOver {
				remembered = append(remembered, f)
			}
			if c.forgotten {
				remembered = nil
			}
			s.replaceLeader(func() {
				s.SetSilentAfter(silentFor)
				s.RememberFailedOver(remembered)
				for _, session := range c.asked {
					s.ask(session, 1)
				}
				s.HeardBefore(&event.NodeObserved{Node: capacity.Node{Cluster: "c"}, Version: event.Version{Session: 1}}, s.now, s.now)
			})
			if got := s.ClusterLoads()[0].Returning; got != c.returns {
				t.Fatalf("the cluster returns: %t, want %t", got, c.returns)
			}
			if s.gang().Holding == c.returns {
				t.Errorf("the gang holds places: %t", s.gang().Holding)
			}
			s.ask(3, 1)
			s.step(time.Second)
			if load := s.ClusterLoads()[0]; load.Returning || !s.gang().Holding {
				t.Errorf("after the answer the cluster returns: %t; the gang holds places: %t", load.Returning, s.gang().Holding)
			}
		})
	}
}

// What keeps a gang where it is.
func TestAGangDoesNotFailOver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rule     string
		unmarked bool
		keep     func(*stage)
	}{
		"its queue has it stay":                 {rule: workload.StayInLostCluster},
		"nothing says that its object obeys":    {rule: workload.FailOver, unmarked: true},
		"the watcher reports":                   {rule: workload.FailOver, keep: func(s *stage) { s.node("n0", nil) }},
		"the permission is renewed":             {rule: workload.FailOver, keep: func(s *stage) { s.ask(1, 2) }},
		"another dispatcher acts, and asks not": {rule: workload.FailOver, keep: func(s *stage) { s.dispatchers["c"] = 2 }},
		"the dispatcher is heard, and asks not": {rule: workload.FailOver, keep: func(s *stage) { s.hear("c", Dispatcher, s.now) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newPermitted(t, c.rule, !c.unmarked)
			for range 20 {
				s.step(30 * time.Second)
				if c.keep != nil {
					c.keep(s)
				}
			}
			if s.failedOver() {
				t.Errorf("the gang failed over: %+v", s.gang().Reason)
			}
		})
	}
}

// newCommanded has a gang that fails over and was admitted when its cluster was cut off: its
// dispatcher asked for a permission before, and reports nothing of the gang.
func newCommanded(t *testing.T, rule string) *stage {
	t.Helper()
	s := newStage(t, workload.Rules{OnLostCluster: rule}, 4)
	s.SetSilentAfter(silentFor)
	s.begun = s.now
	s.ask(1, 1)
	return s
}

// setRule changes what becomes of the gangs of the queue in a lost cluster.
func (s *stage) setRule(rule string) {
	queue := s.queues["q"]
	queue.Rules.OnLostCluster = rule
	s.ApplyConfiguration([]Queue{queue}, quota.Config{}, s.Version()+1)
}

// A gang that was admitted in the time in which its cluster was not known to be lost starts
// elsewhere like one that was created: its dispatcher creates it only with a permission. It
// stays when it may have been commanded without that.
func TestAGangThatWasNotReportedFailsOver(t *testing.T) {
	t.Parallel()
	resend := func(s *stage) { s.ResendCommands(s.now, func(string) bool { return true }) }
	for name, c := range map[string]struct {
		rule      string
		meanwhile func(*stage)
		stays     bool
	}{
		"it was commanded to need the permission":        {rule: workload.FailOver},
		"its command was sent again":                     {rule: workload.FailOver, meanwhile: resend},
		"its dispatcher waits for the permission":        {rule: workload.FailOver, meanwhile: func(s *stage) { s.status(1, func(g *event.GangStatus) { g.Session = 1 }) }},
		"it is being evicted":                            {rule: workload.FailOver, meanwhile: func(s *stage) { s.evictNow(s.gang(), &workload.Reason{Kind: workload.ReasonRequeued}, s.now) }},
		"its queue had it stay":                          {stays: true, rule: workload.StayInLostCluster, meanwhile: func(s *stage) { s.setRule(workload.FailOver) }},
		"its queue had it stay, and its command says so": {stays: true, rule: workload.StayInLostCluster, meanwhile: func(s *stage) { s.setRule(workload.FailOver); resend(s) }},
		"its queue had it stay for a while": {stays: true, rule: workload.FailOver, meanwhile: func(s *stage) {
			s.setRule(workload.StayInLostCluster)
			resend(s)
			s.setRule(workload.FailOver)
		}},
		"its object was created before": {stays: true, rule: workload.FailOver, meanwhile: func(s *stage) {
			s.status(1, func(g *event.GangStatus) { g.Session, g.Created = 1, true })
		}},
		"a later leader has not seen its command": {stays: true, rule: workload.FailOver, meanwhile: func(s *stage) {
			s.replaceLeader(func() {
				s.SetSilentAfter(silentFor)
				s.ask(1, 1)
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCommanded(t, c.rule)
			if c.meanwhile != nil {
				c.meanwhile(s)
			}
			s.Flush()
			s.step(lasts + lasts/driftOf + stopMargin - time.Second)
			if s.failedOver() {
				t.Fatal("the gang failed over a second before what was created of it had to be stopped")
			}
			s.step(time.Second)
			if s.failedOver() == c.stays {
				t.Fatalf("the gang is %s in attempt %d because of %+v; want it to stay: %t", s.gang().Phase, s.gang().Attempt, s.gang().Reason, c.stays)
			}
			if last := s.commanded(); !c.stays && (last == nil || last.State != event.Absent || last.Attempt != 1) {
				t.Errorf("the last command is %+v, want the removal of attempt 1", last)
			}
		})
	}
}

// A new leader takes it that its predecessor has granted a permission when the term began.
func TestANewLeaderWaitsForWhatItsPredecessorGranted(t *testing.T) {
	t.Parallel()
	s := newPermitted(t, workload.FailOver, true)
	asked := s.now
	s.step(lasts)
	s.replaceLeader(func() {
		s.SetSilentAfter(silentFor)
		s.HeardBefore(&event.PermissionAsked{Cluster: "c", Session: 1}, asked, s.now)
		s.ask(1, 1)
		s.status(1, func(g *event.GangStatus) { g.Session, g.Created, g.Permitted = 1, true, true })
	})
	for _, m := range s.Flush().Messages {
		if _, is := m.Payload.(*event.PermissionGranted); is {
			t.Error("an old question was answered")
		}
	}
	s.step(lasts + stopMargin)
	if s.failedOver() {
		t.Fatal("the gang failed over before the permission had run out that may have been granted as the term began")
	}
	s.step(lasts / driftOf)
	if !s.failedOver() {
		t.Error("the gang did not fail over")
	}
}

// A gang that its dispatcher has stopped starts again; one that others delete is cancelled.
func TestAStoppedGangStartsAgain(t *testing.T) {
	t.Parallel()
	for stopped, want := range map[bool]workload.Phase{true: workload.Evicting, false: workload.Cancelling} {
		s := newPermitted(t, workload.FailOver, true)
		s.status(1, func(g *event.GangStatus) { g.Session, g.Created, g.Gone, g.Stopped = 1, true, true, stopped })
		if got := s.gang().Phase; got != want {
			t.Errorf("stopped by the dispatcher %t: the gang is %s, want %s", stopped, got, want)
		}
	}
}
