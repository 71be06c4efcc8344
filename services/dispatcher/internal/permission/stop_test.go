package permission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// slowServer takes its time for each request.
type slowServer struct {
	mu sync.Mutex
	server
	takes   time.Duration
	hangs   int   // that number of objects never answers
	listing error // of a kind
}

func (s *slowServer) Permitted(ctx context.Context) ([]Held, error) {
	time.Sleep(5 * s.takes)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.held), s.listing
}

func (s *slowServer) Stop(ctx context.Context, h Held) error {
	var number int
	if _, err := fmt.Sscanf(h.UID, "%d", &number); err != nil || number < s.hangs {
		<-ctx.Done()
		return fmt.Errorf("delete pod %s: %w", h.Name, ctx.Err())
	}
	time.Sleep(s.takes)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = slices.DeleteFunc(s.held, func(o Held) bool { return o.UID == h.UID })
	return nil
}

// ticking is the clock of a bubble.
type ticking struct{ began time.Time }

func (c ticking) Elapsed() time.Duration { return time.Since(c.began) }
func (c ticking) Wall() time.Time        { return time.Now() }

// Everything is stopped within the 20 s that queue-manager waits for requests, also when there
// are thousands of pods and the API server takes seconds; what hangs keeps nothing else waiting.
func TestThousandsOfPodsAreStoppedInTime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pods  int
		takes time.Duration
		hangs int
		lists error
		left  int
	}{
		"a slow API server":         {pods: 3000, takes: 300 * time.Millisecond},
		"2,000 pods":                {pods: 2000, takes: 500 * time.Millisecond},
		"a few hang":                {pods: 500, takes: 300 * time.Millisecond, hangs: 20, left: 20},
		"one kind cannot be listed": {pods: 500, takes: 300 * time.Millisecond, lists: errors.New("list each RayService")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &slowServer{takes: c.takes, hangs: c.hangs, listing: c.lists}
				for i := range c.pods {
					s.held = append(s.held, Held{Kind: Pod, Name: fmt.Sprint(i), UID: fmt.Sprint(i), Workload: "w", Attempt: 1})
				}
				began := time.Now()
				err := New(s, ticking{began}, lasts).Look(t.Context())
				if took := time.Since(began); len(s.held) != c.left || c.hangs == 0 && took > 20*time.Second {
					t.Errorf("%d pods are left after %s, want %d", len(s.held), took, c.left)
				}
				if (err != nil) != (c.hangs > 0 || c.lists != nil) || err != nil && len(err.Error()) > 600 {
					t.Errorf("the error is %v", err)
				}
			})
		})
	}
}

// What is being deleted already holds nothing up, whether it goes or not.
func TestAnObjectThatDoesNotGoHoldsNothingUp(t *testing.T) {
	t.Parallel()
	s, c, k := newKept(t)
	s.stuck = true
	c.pass(lasts)
	look(t, k)
	if renew(t, k, 0, c); !k.Valid() || len(s.held) != 1 {
		t.Errorf("valid %t with %d objects", k.Valid(), len(s.held))
	}
	if got := k.Ending(); len(got) != 1 {
		t.Errorf("%q is named, want the object", got)
	}
}

// A pod that others delete with a long grace is stopped sooner.
func TestASlowPodIsStopped(t *testing.T) {
	t.Parallel()
	s, c, k := newKept(t)
	s.held = []Held{{Kind: Pod, Name: "p", UID: "2", Workload: "v", Attempt: 1, Deleting: true, Slow: true}}
	c.pass(lasts)
	if look(t, k); len(s.held) != 0 || slices.Contains(s.record.Stopped, "v/1") {
		t.Errorf("%d pods are left, and %q are noted", len(s.held), s.record.Stopped)
	}
}

// More attempts than can be noted are stopped all the same, and any may have been.
func TestMoreIsStoppedThanCanBeNoted(t *testing.T) {
	t.Parallel()
	s, c, k := newKept(t)
	for i := range stoppedMost + 10 {
		s.held = append(s.held, Held{Kind: "RayCluster", UID: fmt.Sprint("x", i), Workload: workload.ID(fmt.Sprint("x", i)), Attempt: 1})
	}
	c.pass(lasts)
	look(t, k)
	if len(s.held) != 0 || len(s.record.Stopped) != stoppedMost || !s.record.Overflowed {
		t.Fatalf("%d objects are left; %d are noted, overflowed %t", len(s.held), len(s.record.Stopped), s.record.Overflowed)
	}
	if was, err := k.WasStopped(t.Context(), workload.ID(fmt.Sprint("x", stoppedMost+9)), 1); !was || err != nil {
		t.Errorf("the last one was stopped: %t, %v", was, err)
	}
	if renew(t, k, 0, c); !s.record.Overflowed {
		t.Error("it is forgotten that there were more")
	}
}

// A machine that was suspended between the question and its answer does not get that time twice.
func TestASuspendedMachineLosesItsTime(t *testing.T) {
	t.Parallel()
	for name, suspend := range map[string]func(*clock){
		"a clock that stood still": func(c *clock) { c.wall = c.wall.Add(40 * time.Second) },
		"a clock that went on":     func(c *clock) { c.pass(40 * time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			s, c, k := newKept(t)
			c.pass(10 * time.Second)
			asked, err := k.Ask(t.Context(), "c", 1, true, false)
			if err != nil {
				t.Fatal(err)
			}
			end := c.wall.Add(lasts)
			suspend(c)
			k.Granted(&event.PermissionGranted{Session: 1, Number: asked.Number, For: asked.For})
			if err := k.Store(t.Context(), func(workload.ID, int) bool { return true }); err != nil {
				t.Fatal(err)
			}
			if s.record.Until.After(end) || k.Left() > 20*time.Second {
				t.Errorf("it lasts until %s and for %s, want until %s", s.record.Until, k.Left(), end)
			}
		})
	}
}

// What is over creates nothing, also where this process has stored it.
func TestNothingIsValidThatIsOver(t *testing.T) {
	t.Parallel()
	s, c, k := newKept(t)
	s.record.Stopping = true
	s.held = nil
	if look(t, k); k.Valid() {
		t.Errorf("it is valid at %s while another process stops", c.elapsed)
	}
}

// What is stored is read from an object that others may write. It lasts no longer than any
// permission may.
func TestAStoredPermissionHasABound(t *testing.T) {
	t.Parallel()
	s, c, k := newKept(t)
	s.held = []Held{{Kind: "RayCluster", Name: "a", UID: "1", Workload: "w", Attempt: 2}}
	s.record = Record{Until: c.wall.Add(100 * 365 * 24 * time.Hour), For: workload.Duration(100 * 365 * 24 * time.Hour), Text: "forged"}
	look(t, k)
	c.pass(event.PermissionMost - time.Second)
	if look(t, k); len(s.held) != 1 {
		t.Errorf("the object is stopped at %s, before any permission has to end", c.elapsed)
	}
	c.pass(time.Second)
	if look(t, k); len(s.held) != 0 {
		t.Errorf("the object is kept at %s, longer than any permission may last", c.elapsed)
	}
}

// A process that sees the permission being stored goes by its own clock, and one with a wall
// clock that is ahead stops nothing; one that has started later goes by the wall clock, and says
// that it did.
func TestAWallClockThatIsAheadStopsNothing(t *testing.T) {
	t.Parallel()
	s, c, k := newKept(t)
	ahead := &clock{wall: c.wall.Add(time.Hour)}
	other := New(s, ahead, lasts)
	s.held = nil
	look(t, other)
	if other.EndsByWall() != 1 {
		t.Errorf("%d ends by the wall clock, want 1", other.EndsByWall())
	}
	c.pass(LookEvery)
	ahead.pass(LookEvery)
	renew(t, k, 0, c)
	s.held = []Held{{Kind: "RayCluster", Name: "a", UID: "1", Workload: "w", Attempt: 2}}
	for range 2 * int(lasts/LookEvery) {
		c.pass(LookEvery)
		ahead.pass(LookEvery)
		if c.elapsed%(10*time.Second) == time.Second {
			renew(t, k, 0, c)
		}
		if look(t, other); len(s.held) == 0 {
			t.Fatalf("the object is stopped at %s", c.elapsed)
		}
	}
	for range int(lasts/LookEvery) + 1 {
		ahead.pass(LookEvery)
		look(t, other)
	}
	if len(s.held) != 0 {
		t.Error("the object is not stopped when the permission is not renewed")
	}
}

// After a restore of etcd an earlier permission is there again. It gets no new time from a process
// that has seen it, or a permission of a later session, whatever its wall clock is set to.
func TestAnEarlierPermissionGetsNoNewTime(t *testing.T) {
	t.Parallel()
	const renewed = 30 * time.Second
	for name, c := range map[string]struct {
		sees   bool          // the process has seen the first one
		wall   time.Duration // by which its wall clock is set
		stored func(*Record)
		kept   time.Duration // from the renewal
	}{
		"it has seen it":                     {true, -time.Hour, func(*Record) {}, lasts - renewed},
		"it has seen a later session":        {false, 0, func(r *Record) { r.Session = 0 }, lasts - renewed},
		"it ended before, by the wall clock": {false, time.Hour, func(r *Record) { r.Session = 0 }, 0},
		"it was stored now":                  {false, time.Hour, func(r *Record) { r.Until = r.Until.Add(time.Second) }, lasts},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, first, k := newKept(t)
			own := &clock{wall: first.wall.Add(c.wall)}
			other := New(s, own, lasts)
			earlier, held := s.record, s.held
			if c.sees {
				look(t, other)
			}
			first.pass(renewed)
			own.pass(renewed)
			renew(t, k, 0, first)
			s.held = nil // what ends now is not what is looked at
			look(t, other)
			c.stored(&earlier)
			s.record, s.held = earlier, held
			for passed := time.Duration(0); passed <= 2*lasts; passed += LookEvery {
				if look(t, other); (len(s.held) > 0) != (passed < c.kept) {
					t.Fatalf("%s after the restore the object is there: %t, want until %s", passed, len(s.held) > 0, c.kept)
				}
				own.pass(LookEvery)
			}
		})
	}
}

// A dispatcher that was replaced stores nothing over what its successor has stored.
func TestAReplacedDispatcherStoresNothing(t *testing.T) {
	t.Parallel()
	s, _, k := newKept(t)
	asked, err := k.Ask(t.Context(), "c", 1, true, false)
	if err != nil {
		t.Fatal(err)
	}
	k.Granted(&event.PermissionGranted{Session: 1, Number: asked.Number, For: asked.For})
	s.record.Session = 2
	k.granted.ends++ // an answer that is worth storing
	if err := k.Store(t.Context(), nil); !errors.Is(err, ErrChanged) {
		t.Errorf("the error is %v", err)
	}
}

// Where nothing was ever stored what needs the permission is listed once; and a dispatcher that
// begins says that nothing is left there.
func TestANewClusterAsksOnce(t *testing.T) {
	t.Parallel()
	s, c := &server{}, &clock{wall: time.Unix(1_000_000, 0).UTC()}
	k := New(s, c, lasts)
	lists := 0
	s.listing = func() { lists++ }
	if _, err := k.Ask(t.Context(), "c", 1, false, true); !errors.Is(err, ErrStopping) {
		t.Errorf("it asks before it has looked, %v", err)
	}
	for range 600 {
		look(t, k)
		c.pass(LookEvery)
	}
	if lists != 1 {
		t.Errorf("listed %d times", lists)
	}
	asked, err := k.Ask(t.Context(), "c", 1, false, true)
	if err != nil || asked == nil {
		t.Fatalf("asked %+v, %v", asked, err)
	}
	if k.Granted(&event.PermissionGranted{Session: 1, Number: asked.Number, For: asked.For}) {
		t.Error("the answer permits something")
	}
	if again, err := k.Ask(t.Context(), "c", 1, false, false); again != nil || err != nil {
		t.Errorf("asked %+v again, %v", again, err)
	}
}
