package reconcile

import (
	"slices"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// TestWatchRayObject: what is seen of a created object leads to its status.
func TestWatchRayObject(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*cluster)
		check  func(event.GangStatus) bool
	}{
		"it is there": {check: func(s event.GangStatus) bool { return s.Created && !s.Gone }},
		"a user deleted it": {change: func(c *cluster) { delete(c.objects, "r") },
			check: func(s event.GangStatus) bool { return s.Gone && s.Released }},
		"the cache lags": {change: func(c *cluster) { c.uncached = map[string]bool{"r": true} },
			check: func(s event.GangStatus) bool { return s.Created && !s.Gone }},
		"a user created it again": {change: func(c *cluster) { c.objects["r"].UID = "another" },
			check: func(s event.GangStatus) bool { return s.Gone && s.UID == "uid-r" }},
		"it came to its end": {change: func(c *cluster) { c.objects["r"].Outcome = event.OutcomeFailed },
			check: func(s event.GangStatus) bool { return s.Outcome == event.OutcomeFailed && s.Released && !s.Gone }},
		"KubeRay reports an error": {change: func(c *cluster) { c.objects["r"].Message = "no quota" },
			check: func(s event.GangStatus) bool { return s.Message == "no quota" && !s.Refused }},
		"it was resized": {change: func(c *cluster) { c.objects["r"].Sizes = map[string]int{"g": 3} },
			check: func(s event.GangStatus) bool { return s.Sizes["g"] == 3 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t)
			command := rayCommand(1)
			p.Command(&command)
			if err := p.see(t, 1); err != nil || !p.status.Created {
				t.Fatalf("it is not created: %+v, %v", p.status, err)
			}
			if c.change != nil {
				c.change(p.cluster)
			}
			if err := p.see(t, 2); err != nil {
				t.Fatal(err)
			}
			if !c.check(p.status) {
				t.Errorf("the status is %+v", p.status)
			}
			if len(p.cluster.created) != 1 || len(p.cluster.deleted) > 0 {
				t.Errorf("created are %v and deleted %v, want one creation", p.cluster.created, p.cluster.deleted)
			}
		})
	}
}

// TestAnnounceEviction: the object shows the time of its eviction, which is written once.
func TestAnnounceEviction(t *testing.T) {
	t.Parallel()
	p := play(t)
	command := rayCommand(1)
	command.EvictAt = time.Unix(1_700_000_600, 0)
	p.Command(&command)
	writes := 0
	for range 3 {
		if err := p.see(t, 1); err != nil {
			t.Fatal(err)
		}
		p.cluster.write = func() { writes++ }
	}
	if got, want := p.cluster.objects["r"].EvictingAt, "2023-11-14T22:23:20Z"; got != want {
		t.Errorf("the object shows %q, want %q", got, want)
	}
	if writes != 2 { // before and after the one
		t.Errorf("there were %d writes, want one", writes/2)
	}
}

// TestGoneIsWhole: when a user deletes one of the objects of an AppWrapper that make
// pods, the others go, too.
func TestGoneIsWhole(t *testing.T) {
	t.Parallel()
	p := play(t)
	command := wrappedMaking(t, "b", "a", "b", "c")
	command.ObjectPolicy = workload.ObjectPolicy{Kinds: []string{workload.AllKinds}}
	p.Command(&command)
	if err := p.see(t, 2); err != nil || !p.status.Created {
		t.Fatalf("it is not created: %+v, %v", p.status, err)
	}
	delete(p.cluster.items, thingB)
	if err := p.see(t, 2); err != nil {
		t.Fatal(err)
	}
	if !p.status.Gone || !p.status.Released || p.status.Message != "Thing n/b is gone" || !slices.Equal(p.cluster.deleted, []string{"c", "a"}) {
		t.Errorf("deleted are %v, status %+v", p.cluster.deleted, p.status)
	}
}
