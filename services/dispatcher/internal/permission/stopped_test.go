package permission

import (
	"slices"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// The object that has the permission is deleted: what needs it is kept until its end all the
// same, and then stopped, and a renewal counts for nothing. When the object is there again it
// has what was stopped, and what was before.
func TestWithoutItsLeaseAPermissionEndsAllTheSame(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]Record{
		"it comes back empty":                       {},
		"another process has noted something there": {Stopping: true, Stopped: []string{"other/1"}, Text: "another"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c, k := newKept(t)
			s.record.Stopped = []string{"before/1"}
			look(t, k)
			s.missing, s.record = true, Record{}
			c.pass(lasts - 2*time.Second)
			asked, err := k.Ask(t.Context(), "c", 1, true, false)
			if err != nil {
				t.Fatal(err)
			}
			k.Granted(&event.PermissionGranted{Session: 1, Number: asked.Number, For: asked.For})
			if err := k.Store(t.Context(), func(workload.ID, int) bool { return true }); err == nil {
				t.Error("an answer is stored nowhere, without an error")
			}
			c.pass(time.Second)
			if look(t, k); len(s.held) != 1 || !k.Valid() || !k.Stored() {
				t.Fatalf("a second before the end %d objects are there, valid %t, stored %t", len(s.held), k.Valid(), k.Stored())
			}
			c.pass(time.Second)
			if look(t, k); len(s.held) != 0 || k.Valid() {
				t.Fatalf("at the end %d objects are there, valid %t", len(s.held), k.Valid())
			}
			if stopped, err := k.WasStopped(t.Context(), "w", 2); err != nil || !stopped {
				t.Errorf("the attempt was stopped: %t, %v", stopped, err)
			}
			if _, err := k.WasStopped(t.Context(), "v", 1); err == nil {
				t.Error("nothing says that it is not known of another attempt")
			}
			s.missing, s.record = false, again
			look(t, k)
			want := append(slices.Clone(again.Stopped), "before/1", "w/2")
			if !slices.Equal(s.record.Stopped, want) || !s.record.Stopping {
				t.Errorf("noted is %+v, want %q, stopping", s.record, want)
			}
			if stopped, err := k.WasStopped(t.Context(), "v", 1); err != nil || stopped {
				t.Errorf("another attempt was stopped: %t, %v", stopped, err)
			}
			if renew(t, k, 0, c); !k.Valid() || !slices.Equal(s.record.Stopped, want) {
				t.Errorf("after the next permission it is valid %t, and noted is %+v", k.Valid(), s.record)
			}
		})
	}
}

// A process that starts when the object is missing knows of no permission, and stops at once
// what needs one: also what others create later.
func TestAProcessThatStartsWithoutTheLeaseStopsAtOnce(t *testing.T) {
	t.Parallel()
	s, c, _ := newKept(t)
	s.missing = true
	k := New(s, c, lasts)
	if look(t, k); len(s.held) != 0 || k.Stops() != 1 {
		t.Errorf("%d objects are there, and %d were stopped", len(s.held), k.Stops())
	}
	s.held = []Held{{Kind: "RayCluster", Name: "late", UID: "2", Workload: "v", Attempt: 1}}
	c.pass(listLess)
	if look(t, k); len(s.held) != 0 {
		t.Error("what came late is there")
	}
	s.missing, s.record = false, Record{}
	if look(t, k); !slices.Equal(s.record.Stopped, []string{"w/2", "v/1"}) {
		t.Errorf("noted is %+v, want both", s.record)
	}
}

// What is on its way when the object is deleted comes when it is there again, and empty. It is
// stopped, too.
func TestWhatIsOnItsWayIsStoppedWithoutTheLease(t *testing.T) {
	t.Parallel()
	s, c, k := newKept(t)
	s.missing, s.held = true, nil
	fresh := New(s, c, lasts)
	for _, other := range []*Keeper{k, fresh} {
		c.pass(lasts)
		look(t, other)
		s.missing, s.record = false, Record{}
		look(t, other)
		c.pass(listLess)
		look(t, other)
		s.held = []Held{{Kind: "RayCluster", Name: "late", UID: "2", Workload: "v", Attempt: 1}}
		c.pass(listLess)
		if look(t, other); len(s.held) != 0 {
			t.Error("what came late is there")
		}
		s.missing, s.held = true, nil
	}
}

// The object is deleted just after it was renewed: the permission that was stored last counts,
// and what it was before does not count again.
func TestWhatWasStoredLastCountsWithoutTheLease(t *testing.T) {
	t.Parallel()
	s, c, k := newKept(t)
	c.pass(10 * time.Second)
	renew(t, k, 20*time.Second, c) // 40 s are left of it
	s.missing = true
	c.pass(LookEvery)
	if look(t, k); len(s.held) != 1 {
		t.Fatal("the object is stopped at once")
	}
	c.pass(lasts - 20*time.Second - LookEvery)
	if look(t, k); len(s.held) != 0 {
		t.Errorf("the object is there, and the permission has ended")
	}
}
