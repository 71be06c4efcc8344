package rules_test

import (
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/pkg/kube/lease/rules"
)

func times() rules.Times { return rules.Times{Duration: rules.DefaultDuration} }

func start() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// TestAHolderThatCannotRenew: the pauses double, it stops acting once, and gives up when its lease
// has been over for long.
func TestAHolderThatCannotRenew(t *testing.T) {
	t.Parallel()
	h := rules.NewHolder(times(), start())
	for i, step := range []struct {
		held time.Duration
		want rules.Next
	}{
		{time.Second, rules.Next{After: 250 * time.Millisecond}},
		{3 * time.Second, rules.Next{After: 500 * time.Millisecond}},
		{3001 * time.Millisecond, rules.Next{After: time.Second, Stops: true}},
		{12 * time.Second, rules.Next{After: time.Second}},
		{12001 * time.Millisecond, rules.Next{Lost: true, For: 12001 * time.Millisecond}},
	} {
		if got := h.Failed(step.held); got != step.want {
			t.Errorf("after failure %d: %+v, want %+v", i+1, got, step.want)
		}
	}
}

// TestAHolderWhoseRenewalsAreStoredLate: it acts again after the first one that is in time, and
// gives way when none is for long.
func TestAHolderWhoseRenewalsAreStoredLate(t *testing.T) {
	t.Parallel()
	h, now := rules.NewHolder(times(), start()), start()
	for i, step := range []struct {
		after, held time.Duration
		want        rules.Next
	}{
		{time.Second, 10 * time.Millisecond, rules.Next{After: 990 * time.Millisecond}},
		{4 * time.Second, 3500 * time.Millisecond, rules.Next{After: 250 * time.Millisecond, Stops: true}},
		{4 * time.Second, 3500 * time.Millisecond, rules.Next{After: 250 * time.Millisecond}},
		{3 * time.Second, 2 * time.Second, rules.Next{After: 250 * time.Millisecond, Resumes: true}},
		{12 * time.Second, 3500 * time.Millisecond, rules.Next{After: 250 * time.Millisecond, Stops: true}},
		{time.Second, 3500 * time.Millisecond, rules.Next{Lost: true, For: 13 * time.Second}},
	} {
		now = now.Add(step.after)
		if got := h.Renewed(now, step.held); got != step.want {
			t.Errorf("after renewal %d: %+v, want %+v", i+1, got, step.want)
		}
	}
}

// TestTheFirstSlowRenewalIsGivenUpEarly: later ones get as long as they need.
func TestTheFirstSlowRenewalIsGivenUpEarly(t *testing.T) {
	t.Parallel()
	h := rules.NewHolder(times(), start())
	if most, bounded := h.Within(); !bounded || most != 1500*time.Millisecond {
		t.Errorf("the first renewal is bounded by %s: %t, want 1.5s", most, bounded)
	}
	h.Failed(2 * time.Second)
	if _, bounded := h.Within(); bounded {
		t.Error("a renewal after one that was given up is bounded")
	}
	h.Renewed(start().Add(3*time.Second), time.Millisecond)
	if _, bounded := h.Within(); !bounded {
		t.Error("a renewal after a fast one is not bounded")
	}
}

// TestWhenAStandbyTakesALease goes by what it has seen, and when.
func TestWhenAStandbyTakesALease(t *testing.T) {
	t.Parallel()
	lease := func(holder string, renewed, seconds int) *coordination.Lease {
		return &coordination.Lease{Spec: coordination.LeaseSpec{
			HolderIdentity: new(holder), LeaseDurationSeconds: new(int32(seconds)), RenewTime: &metav1.MicroTime{Time: start().Add(time.Duration(renewed) * time.Hour)},
		}}
	}
	at := func(seconds float64) time.Time { return start().Add(time.Duration(seconds * float64(time.Second))) }
	for name, c := range map[string]struct {
		see  func(*rules.Standby)
		want time.Time
	}{
		"seen once": {func(s *rules.Standby) { s.Read(lease("other", 0, 4), at(0), at(0)) }, at(4)},
		"renewed": {func(s *rules.Standby) {
			s.Read(lease("other", 0, 4), at(0), at(0))
			s.Watched(lease("other", 1, 4), at(1))
		}, at(5)},
		"seen again": {func(s *rules.Standby) {
			s.Read(lease("other", 0, 4), at(0), at(0))
			s.Read(lease("other", 0, 4), at(3), at(3))
		}, at(4)},
		"of a longer lease":       {func(s *rules.Standby) { s.Read(lease("other", 0, 10), at(0), at(0)) }, at(10)},
		"of an endless lease":     {func(s *rules.Standby) { s.Read(lease("other", 0, 1<<30), at(0), at(0)) }, at(300)},
		"released":                {func(s *rules.Standby) { s.Read(lease("", 0, 1), at(0), at(0)) }, time.Time{}},
		"of its own request":      {func(s *rules.Standby) { s.Read(lease("me", 0, 4), at(0), at(0)) }, time.Time{}},
		"of its last term":        {func(s *rules.Standby) { s.Read(lease("before", 0, 4), at(0), at(0)) }, time.Time{}},
		"by a read that was slow": {func(s *rules.Standby) { s.Read(lease("other", 0, 1), at(0), at(2)) }, at(3.25)},
		"after a failure":         {func(s *rules.Standby) { s.Failed(); s.Read(lease("other", 0, 1), at(0), at(0)) }, at(1.25)},
	} {
		t.Run(name, func(t *testing.T) {
			s := &rules.Standby{Times: times(), Identity: "me", Ended: "before"}
			c.see(s)
			if got := s.FreeAt(); !got.Equal(c.want) {
				t.Errorf("it may be taken at %s, want %s", got, c.want)
			}
		})
	}
}
