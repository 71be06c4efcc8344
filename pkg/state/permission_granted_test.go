package state

import (
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// A dispatcher that asks again and again is answered once a second.
func TestGrantsAreBounded(t *testing.T) {
	t.Parallel()
	s := newPermitted(t, workload.FailOver, true)
	s.step(time.Second)
	s.Flush()
	for i := range int64(100) {
		s.ask(1, 10+i)
	}
	grants := 0
	for _, m := range s.Flush().Messages {
		if _, is := m.Payload.(*event.PermissionGranted); is {
			grants++
		}
	}
	if grants != 1 {
		t.Errorf("%d questions of a second have %d answers", 100, grants)
	}
}

// A question is answered with what it asks for, and one of a replaced dispatcher is not.
func TestPermissionsAreGrantedToTheOneThatActs(t *testing.T) {
	t.Parallel()
	s := newPermitted(t, workload.FailOver, true)
	granted := func() (last *event.PermissionGranted) {
		for _, m := range s.Flush().Messages {
			if g, is := m.Payload.(*event.PermissionGranted); is && m.Subject == event.PermissionSubject("c") {
				last = g
			}
		}
		return last
	}
	s.step(time.Second)
	s.ask(2, 7)
	if g := granted(); g == nil || g.Session != 2 || g.Number != 7 || time.Duration(g.For) != lasts {
		t.Errorf("granted is %+v", g)
	}
	s.ask(1, 8)
	if g := granted(); g != nil {
		t.Errorf("granted is %+v, want nothing for a dispatcher that was replaced", g)
	}
}

// Only what a dispatcher can stop alone, and what can start elsewhere, needs the permission.
func TestWhatNeedsAPermission(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind, submitter, rule string
		want                  bool
	}{
		"a RayCluster":           {kind: workload.KindRayCluster, rule: workload.FailOver, want: true},
		"of a queue that stays":  {kind: workload.KindRayCluster, rule: workload.StayInLostCluster},
		"of a queue by default":  {kind: workload.KindRayCluster},
		"a bundle":               {kind: workload.KindAppWrapper, rule: workload.FailOver},
		"an object of a cluster": {kind: workload.KindRayJob, submitter: workload.ByKubernetes + "/c/ns", rule: workload.FailOver},
	} {
		t.Run(name, func(t *testing.T) {
			e := &entry{Record: workload.Record{Workload: workload.Workload{Kind: c.kind, Submitter: c.submitter}}}
			if got := needsPermission(e, workload.Rules{OnLostCluster: c.rule}); got != c.want {
				t.Errorf("%t, want %t", got, c.want)
			}
		})
	}
}
