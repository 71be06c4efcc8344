package reconcile

import (
	"maps"
	"slices"
	"testing"
	"time"

	"muster.dev/muster/pkg/manifest/bundle"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/services/dispatcher/internal/kubernetes"
)

// died is what a write panics with when the process dies in it.
type died struct{}

// life is a workload from its start to its end, on dispatchers of which one dies.
type life struct {
	*played
	t       *testing.T
	dies    int // before, or after, the write of that number; counted from 1
	writes  int
	command event.GangCommand
}

func newLife(t *testing.T, command event.GangCommand, dies int) *life {
	t.Helper()
	l := &life{t: t, dies: dies, command: command, played: play(t)}
	l.cluster.write = func() {
		if l.writes++; l.writes == l.dies {
			panic(died{})
		}
	}
	l.Command(&l.command)
	return l
}

// order gives another command.
func (l *life) order(state string) {
	command := l.command
	command.State, command.Order = state, command.Order+1
	l.command = command
	l.Command(&l.command)
}

// step looks at the workload once; a dispatcher that dies is followed by another one,
// which has what was published.
func (l *life) step() {
	defer func() {
		if cause := recover(); cause != nil {
			if _, is := cause.(died); !is {
				panic(cause)
			}
			before := []event.GangStatus{l.status}
			if l.reports == 0 && l.status.Workload == "" {
				before = nil
			}
			l.played = playOn(l.t, l.cluster, before...)
			l.Command(&l.command)
		}
	}()
	if err := l.see(l.t, 1); err != nil {
		l.t.Fatal(err)
	}
	l.clock = l.clock.Add(time.Second)
}

// until looks at the workload until something is so.
func (l *life) until(what string, is func() bool) {
	l.t.Helper()
	for range 20 {
		if is() {
			return
		}
		l.step()
	}
	l.t.Fatalf("death at write %d: after 20 looks it is not %s: %+v", l.dies, what, l.status)
}

// TestRestartBetweenSteps: the dispatcher dies before and after every write in the life
// of a workload. The next one goes on: each object is created once, each pod is pinned
// once, and in the end nothing of the workload is left, and all else.
func TestRestartBetweenSteps(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		command func(*testing.T) event.GangCommand
		created []string
	}{
		"a Ray object":  {command: func(*testing.T) event.GangCommand { return placed() }, created: []string{"r"}},
		"an AppWrapper": {command: placedWrapped, created: []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for dies := 1; ; dies++ {
				l := newLife(t, c.command(t), dies)
				l.live(c.created)
				if l.writes < dies {
					if dies < 10 {
						t.Errorf("a life has %d writes, want more: does the test still play it?", l.writes)
					}
					return // it has lived without a death
				}
			}
		})
	}
}

// live is the life: create, place, remove.
func (l *life) live(created []string) {
	l.t.Helper()
	foreign := bundle.Identity{APIVersion: "v1", Kind: "Thing", Namespace: "n", Name: "foreign"}
	l.cluster.items[foreign] = &kubernetes.Wrapped{Object: kubernetes.Object{Name: "foreign", UID: "foreign"}}
	l.until("created", func() bool { return l.status.Created })
	l.cluster.pods = workers(2)
	for i := range l.cluster.pods {
		l.cluster.pods[i].Controller.UID = "uid-" + created[0]
	}
	l.until("placed", func() bool { return len(l.cluster.pinned) == 2 })
	l.order(event.Absent)
	l.until("without objects", func() bool { return len(l.cluster.objects) == 0 && len(l.cluster.items) == 1 })
	l.cluster.pods = nil
	l.until("released", func() bool { return l.status.Released })
	if !slices.Equal(l.cluster.created, created) {
		l.t.Errorf("death at write %d: created are %v, want %v once", l.dies, l.cluster.created, created)
	}
	if want := map[string]string{"p0": "a", "p1": "b"}; !maps.Equal(l.cluster.pinned, want) {
		l.t.Errorf("death at write %d: pinned are %v, want %v", l.dies, l.cluster.pinned, want)
	}
	if deleted := slices.Sorted(slices.Values(l.cluster.deleted)); !slices.Equal(deleted, created) {
		l.t.Errorf("death at write %d: deleted are %v, want %v once", l.dies, deleted, created)
	}
	if l.cluster.items[foreign] == nil {
		l.t.Errorf("death at write %d: a foreign object was deleted", l.dies)
	}
}

// placedWrapped is an AppWrapper of two Things with the places of placed.
func placedWrapped(t *testing.T) event.GangCommand {
	t.Helper()
	command := wrappedMaking(t, "a", "a", "b")
	from := placed()
	command.PodSets, command.Placements, command.ForceAfter = from.PodSets, from.Placements, from.ForceAfter
	return command
}

// TestRestartAfterRefusal: what one dispatcher created of an AppWrapper that is refused
// is taken back by the next one.
func TestRestartAfterRefusal(t *testing.T) {
	t.Parallel()
	first := play(t)
	first.cluster.answers = map[string]error{"create c": errInvalid, "delete a": errSilent, "delete b": errSilent}
	command := wrapped(t, "a", "b", "c")
	first.Command(&command)
	_ = first.see(t, 2)
	if len(first.status.Objects) != 2 || first.status.Refused {
		t.Fatalf("the status is %+v, want two objects that are being taken back", first.status)
	}
	first.cluster.answers = map[string]error{"create c": errInvalid}
	next := playOn(t, first.cluster, first.status)
	next.Command(&command)
	for range 4 {
		_ = next.see(t, 1)
	}
	if !next.status.Refused || len(next.cluster.items) > 0 || !slices.Equal(next.cluster.deleted, []string{"b", "a"}) {
		t.Errorf("deleted are %v, status %+v; want all taken back and a refusal", next.cluster.deleted, next.status)
	}
}

// TestRestartFindsGone: an object that was reported as created and is not there any
// more is not created again.
func TestRestartFindsGone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before []event.GangStatus
		set    func(*event.GangCommand)
		gone   bool
	}{
		"it was reported":       {before: []event.GangStatus{{Workload: "w", Cluster: "c", Attempt: 1, Epoch: 1, Created: true, UID: "uid-r"}}, gone: true},
		"queue-manager knows":   {set: func(d *event.GangCommand) { d.Created = true }, gone: true},
		"of an earlier attempt": {before: []event.GangStatus{{Workload: "w", Cluster: "c", Attempt: 0, Epoch: 1, Created: true, UID: "uid-0"}}},
		"of another cluster":    {before: []event.GangStatus{{Workload: "w", Cluster: "other", Attempt: 1, Epoch: 1, Created: true, UID: "uid-0"}}},
		"never reported":        {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t, c.before...)
			command := rayCommand(1)
			if c.set != nil {
				c.set(&command)
			}
			p.Command(&command)
			if err := p.see(t, 1); err != nil {
				t.Fatal(err)
			}
			if p.status.Gone != c.gone || (len(p.cluster.created) == 1) == c.gone {
				t.Errorf("created are %v, status %+v; want gone %v", p.cluster.created, p.status, c.gone)
			}
		})
	}
}

// TestGangsPlacesAreKept: the pods that one dispatcher has pinned keep their places, and
// the next one pins the others to what is free.
func TestGangsPlacesAreKept(t *testing.T) {
	t.Parallel()
	p := play(t)
	command := placed()
	p.cluster.pods = workers(2)
	p.cluster.answers["pin p0"] = errSilent
	p.cluster.pods[1].Gated, p.cluster.pods[1].Hostname = false, "a"
	p.Command(&command)
	if _ = p.see(t, 2); len(p.cluster.pinned) > 0 {
		t.Fatalf("pinned are %v, want none", p.cluster.pinned)
	}
	delete(p.cluster.answers, "pin p0")
	next := playOn(t, p.cluster, p.status)
	next.Command(&command)
	if err := next.see(t, 1); err != nil || !maps.Equal(next.cluster.pinned, map[string]string{"p0": "b"}) {
		t.Errorf("pinned are %v, %v; want p0 on b", next.cluster.pinned, err)
	}
}
