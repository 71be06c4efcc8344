package permission

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

const lasts = time.Minute

// server is an API server with objects that need the permission.
type server struct {
	stops   sync.Mutex
	record  Record
	held    []Held
	listing func() // called when they are listed
	stuck   bool   // no deletion ends
	missing bool   // the object that has the record
	fails   error  // of reading it
}

func (s *server) Permission(context.Context) (Record, error) {
	if s.missing {
		return Record{Missing: true}, s.fails
	}
	return s.record, s.fails
}

func (s *server) SetPermission(_ context.Context, instead string, r Record) error {
	if s.missing {
		return errors.New("not found")
	}
	if instead != s.record.Text {
		return ErrChanged
	}
	encoded, err := json.Marshal(r)
	r.Text, s.record = string(encoded), r
	s.record.Text = string(encoded)
	return err
}

func (s *server) Permitted(context.Context) ([]Held, error) {
	if s.listing != nil {
		s.listing()
	}
	return slices.Clone(s.held), nil
}

func (s *server) Stop(_ context.Context, h Held) error {
	s.stops.Lock()
	defer s.stops.Unlock()
	if s.stuck {
		i := slices.IndexFunc(s.held, func(o Held) bool { return o.UID == h.UID })
		s.held[i].Deleting = true
		return nil
	}
	s.held = slices.DeleteFunc(s.held, func(o Held) bool { return o.UID == h.UID })
	return nil
}

// clock is one whose wall clock may be set.
type clock struct {
	elapsed time.Duration
	wall    time.Time
}

func (c *clock) Elapsed() time.Duration { return c.elapsed }
func (c *clock) Wall() time.Time        { return c.wall }
func (c *clock) pass(d time.Duration)   { c.elapsed, c.wall = c.elapsed+d, c.wall.Add(d) }

// newKept has one object, and a process that was granted a permission a moment ago.
func newKept(t *testing.T) (*server, *clock, *Keeper) {
	t.Helper()
	s, c := &server{}, &clock{wall: time.Unix(1_000_000, 0).UTC()}
	k := New(s, c, lasts)
	renew(t, k, 0, c)
	s.held = []Held{{Kind: "RayCluster", Name: "a", UID: "1", Workload: "w", Attempt: 2}}
	return s, c, k
}

// renew asks, waits for the answer, and stores it.
func renew(t *testing.T, k *Keeper, answer time.Duration, c *clock) {
	t.Helper()
	look(t, k)
	asked, err := k.Ask(t.Context(), "c", 1, true, false)
	if err != nil {
		t.Fatal(err)
	}
	c.pass(answer)
	if !k.Granted(&event.PermissionGranted{Cluster: "c", Session: asked.Session, Number: asked.Number, For: asked.For}) {
		t.Fatal("the answer is refused")
	}
	if err := k.Store(t.Context(), func(workload.ID, int) bool { return true }); err != nil {
		t.Fatal(err)
	}
}

func look(t *testing.T, k *Keeper) {
	t.Helper()
	if err := k.Look(t.Context()); err != nil && !errors.Is(err, ErrChanged) {
		t.Fatal(err)
	}
}

// A permission counts from its question, and what is not renewed is noted and stopped.
func TestWhatIsNotRenewedIsStopped(t *testing.T) {
	t.Parallel()
	s, c, k := newKept(t)
	c.pass(10 * time.Second)
	renew(t, k, 20*time.Second, c) // answered late
	c.pass(lasts - 21*time.Second)
	if look(t, k); !k.Valid() || len(s.held) != 1 {
		t.Fatalf("a second before the end it is valid %t, and %d objects are there", k.Valid(), len(s.held))
	}
	c.pass(time.Second)
	if look(t, k); k.Valid() || len(s.held) != 0 {
		t.Fatalf("at the end it is valid %t, and %d objects are there", k.Valid(), len(s.held))
	}
	if stopped, err := k.WasStopped(t.Context(), "w", 2); err != nil || !stopped {
		t.Errorf("the attempt is noted as stopped: %t, %v", stopped, err)
	}
	if stopped, err := k.WasStopped(t.Context(), "w", 3); err != nil || stopped {
		t.Errorf("another attempt is noted as stopped: %t, %v", stopped, err)
	}
}

// A process obeys what any process has stored, whatever its wall clock is set to.
func TestEachProcessObeysWhatIsStored(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*clock)
		after  time.Duration
	}{
		"it runs":                       {func(*clock) {}, lasts},
		"its wall clock is set back":    {func(c *clock) { c.wall = c.wall.Add(-time.Hour) }, lasts},
		"its wall clock is set forward": {func(c *clock) { c.wall = c.wall.Add(time.Hour) }, 0},
		"it has started after the end":  {func(c *clock) { c.pass(lasts) }, 0},
		"it has started before the end": {func(c *clock) { c.pass(lasts / 2) }, lasts / 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, first, _ := newKept(t)
			other := &clock{wall: first.wall}
			k := New(s, other, lasts)
			if name != "it has started after the end" && name != "it has started before the end" {
				look(t, k)
			}
			c.change(other)
			if c.after > 0 {
				if look(t, k); len(s.held) == 0 {
					t.Fatal("the object is stopped at once")
				}
				other.pass(c.after - time.Second)
				if look(t, k); len(s.held) == 0 {
					t.Fatal("the object is stopped before the end")
				}
				other.pass(time.Second)
			}
			if look(t, k); len(s.held) != 0 {
				t.Error("the object is there after the end")
			}
		})
	}
}

// A process that finds the end passed deletes nothing when another has renewed meanwhile.
func TestWhatAnotherProcessRenewsStays(t *testing.T) {
	t.Parallel()
	s, c, k := newKept(t)
	other := New(s, c, lasts)
	c.pass(lasts - time.Second)
	asked, err := k.Ask(t.Context(), "c", 1, true, false)
	if err != nil {
		t.Fatal(err)
	}
	late := *c
	late.pass(time.Second) // the other's clock is ahead
	other.clock = &late
	s.listing = func() {
		s.listing = nil
		if !k.Granted(&event.PermissionGranted{Session: 1, Number: asked.Number, For: asked.For}) {
			t.Error("the answer is refused")
		}
		if err := k.Store(t.Context(), nil); err == nil && !k.Valid() {
			t.Error("it is not valid")
		}
	}
	if look(t, other); len(s.held) != 1 {
		t.Error("the object was stopped")
	}
}

// What has ended is removed before the permission is renewed, and what was stopped is
// remembered for as long as it is commanded.
func TestWhatHasEndedIsRemovedFirst(t *testing.T) {
	t.Parallel()
	s, c, k := newKept(t)
	c.pass(lasts)
	if asked, err := k.Ask(t.Context(), "c", 1, true, false); asked != nil || !errors.Is(err, ErrStopping) {
		t.Fatalf("asked %+v before anything is removed, %v", asked, err)
	}
	if look(t, k); len(s.held) != 0 || !s.record.Stopping {
		t.Fatalf("%d objects, stopping %t", len(s.held), s.record.Stopping)
	}
	if asked, err := k.Ask(t.Context(), "c", 1, true, false); asked != nil || !errors.Is(err, ErrStopping) {
		t.Fatalf("asked %+v before it is seen that all is removed, %v", asked, err)
	}
	if renew(t, k, 0, c); !k.Valid() || k.Waits() || s.record.Stopping || !slices.Contains(s.record.Stopped, "w/2") {
		t.Fatalf("valid %t with %+v", k.Valid(), s.record)
	}
	c.pass(time.Second)
	asked, err := k.Ask(t.Context(), "c", 1, true, false)
	if err != nil || !k.Granted(&event.PermissionGranted{Session: 1, Number: asked.Number, For: asked.For}) {
		t.Fatalf("the answer is refused, %v", err)
	}
	if err := k.Store(t.Context(), func(workload.ID, int) bool { return false }); err != nil || len(s.record.Stopped) != 0 {
		t.Errorf("%v are remembered, %v", s.record.Stopped, err)
	}
}

// Answers to other questions count for nothing: of another session, twice, or for longer.
func TestAnswersToOtherQuestions(t *testing.T) {
	t.Parallel()
	_, c, k := newKept(t)
	asked, err := k.Ask(t.Context(), "c", 2, true, false)
	if err != nil {
		t.Fatal(err)
	}
	for name, g := range map[string]event.PermissionGranted{
		"another session":  {Session: 1, Number: asked.Number, For: asked.For},
		"another question": {Session: 2, Number: asked.Number + 1, For: asked.For},
	} {
		if k.Granted(&g) {
			t.Errorf("%s: the answer counts", name)
		}
	}
	g := &event.PermissionGranted{Session: 2, Number: asked.Number, For: workload.Duration(time.Hour)}
	if !k.Granted(g) || k.Granted(g) {
		t.Error("an answer counts once")
	}
	if err := k.Store(t.Context(), nil); err != nil || k.Left() > lasts {
		t.Errorf("it lasts for %s at %s, %v", k.Left(), c.elapsed, err)
	}
	if nothing, err := New(&server{}, c, lasts).Ask(t.Context(), "c", 1, false, false); nothing != nil || err != nil {
		t.Errorf("asked %+v where nothing needs it, %v", nothing, err)
	}
}

// A process that has found nothing stored obeys what is stored next, at once.
func TestAPermissionIsObeyedFromItsFirstSecond(t *testing.T) {
	t.Parallel()
	s, c := &server{}, &clock{wall: time.Unix(1_000_000, 0).UTC()}
	k, standby := New(s, c, lasts), New(s, c, lasts)
	look(t, standby)
	renew(t, k, 0, c)
	s.held = []Held{{Kind: "RayCluster", Name: "a", UID: "1", Workload: "w", Attempt: 1}}
	for range int(lasts / LookEvery) {
		look(t, standby)
		c.pass(LookEvery)
	}
	if look(t, standby); len(s.held) != 0 {
		t.Error("the object is there when the permission has ended")
	}
}

// A process that cannot read whether there is a permission goes on as if there were: it may have
// to stop something.
func TestAPermissionThatCannotBeReadMayBeThere(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		server *server
		want   bool
	}{
		"none is stored":         {&server{}, false},
		"one is stored":          {&server{record: Record{Text: "{}"}}, true},
		"its object is missing":  {&server{missing: true}, true},
		"the API server is away": {&server{fails: errors.New("connection refused")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := New(c.server, &clock{}, lasts).Known(t.Context()); got != c.want {
				t.Errorf("it may be there: %t, want %t", got, c.want)
			}
		})
	}
}
