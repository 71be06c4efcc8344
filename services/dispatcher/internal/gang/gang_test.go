package gang_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/dispatcher/internal/gang"
)

// command is for a head on node a and two workers on a and b.
func command() *event.GangCommand {
	return &event.GangCommand{
		Attempt: 2, Epoch: 5,
		PodSets: []workload.PodSet{
			{Name: "headgroup", Role: workload.RoleHead, Count: 1}, {Name: "workers", Role: workload.RoleWorker, Count: 2},
			{Name: "submitter", Role: workload.RoleSubmitter, Count: 1},
		},
		Placements: []workload.Placement{
			{PodSet: "headgroup", Node: "a", Pods: 1},
			{PodSet: "workers", Node: "a", Pods: 1},
			{PodSet: "workers", Node: "b", Pods: 1, Hostname: "host-b"},
		},
	}
}

func pod(name, set string) gang.Pod {
	return gang.Pod{Name: name, PodSet: set, Attempt: 2, Gated: true}
}

func pinned(p gang.Pod, hostname string) gang.Pod {
	p.Gated, p.Hostname = false, hostname
	return p
}

func TestPins(t *testing.T) {
	t.Parallel()
	head, one, two := pod("head", "headgroup"), pod("w1", "workers"), pod("w2", "workers")
	older := pod("old", "workers")
	older.Attempt = 1
	ended := pinned(pod("w0", "workers"), "a")
	ended.Ended = true
	elsewhere := pod("w2", "workers")
	elsewhere.Namespace = "other"
	leaving := two
	leaving.Deleting = true
	sent := one
	sent.UID = "sent"
	ungated := pinned(pod("s", "submitter"), "a")
	bound := pinned(two, "")
	bound.Node = "b"
	for name, c := range map[string]struct {
		pods []gang.Pod
		want []string
	}{
		"nothing while one is missing":                          {[]gang.Pod{head, one}, nil},
		"nothing while the missing one is of an attempt before": {[]gang.Pod{head, one, older}, nil},
		"all when all are there":                                {[]gang.Pod{two, head, one}, []string{"head=a", "w1=a", "w2=host-b"}},
		"what is left after a stop in the middle":               {[]gang.Pod{pinned(head, "a"), one, pinned(two, "host-b")}, []string{"w1=a"}},
		"a replacement gets the place that was left":            {[]gang.Pod{pinned(head, "a"), pinned(one, "a"), pod("w3", "workers")}, []string{"w3=host-b"}},
		"a bound pod keeps its place":                           {[]gang.Pod{pinned(head, "a"), bound, pod("w3", "workers")}, []string{"w3=a"}},
		"an ended pod has none":                                 {[]gang.Pod{pinned(head, "a"), ended, one, pinned(two, "host-b")}, []string{"w1=a"}},
		"one too many waits":                                    {[]gang.Pod{pinned(head, "a"), pinned(one, "a"), pinned(two, "host-b"), pod("w4", "workers")}, nil},
		"nothing while the missing one is of another namespace": {[]gang.Pod{head, one, elsewhere}, nil},
		"nothing while one is leaving":                          {[]gang.Pod{head, one, leaving}, nil},
		"the submitter is no sign of a start":                   {[]gang.Pod{head, one, ungated}, nil},
		"a place is taken as soon as a pod was sent there":      {[]gang.Pod{pinned(head, "a"), sent, pod("w0", "workers")}, []string{"w0=host-b"}},
		"nothing to do":                                         {[]gang.Pod{pinned(head, "a"), pinned(one, "a"), pinned(two, "host-b")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, pin := range gang.Pins(command(), c.pods, map[string]string{"sent": "a"}, nil) {
				got = append(got, fmt.Sprintf("%s=%s", pin.Pod.Name, pin.Hostname))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		})
	}
}

// TestPinsBeforeAllExist: the pods that exist are sent once each set has one and the
// others have room; of a gang that has begun each that appears is.
func TestPinsBeforeAllExist(t *testing.T) {
	t.Parallel()
	head, one, two := pod("head", "headgroup"), pod("w1", "workers"), pod("w2", "workers")
	leaving := one
	leaving.Deleting = true
	cleaner := head
	cleaner.Cleanup = true
	for name, c := range map[string]struct {
		pods []gang.Pod
		room bool
		asks string // set and number of what is missing; empty when nothing is asked
		want []string
	}{
		"a set has none":                     {pods: []gang.Pod{head}, room: true},
		"the head is missing":                {pods: []gang.Pod{one, two}, room: true},
		"the only one of a set is leaving":   {pods: []gang.Pod{head, leaving}, room: true},
		"a cleaner is no head":               {pods: []gang.Pod{cleaner, one}, room: true},
		"each set has one":                   {pods: []gang.Pod{one, head}, room: true, asks: "1 workers like w1", want: []string{"head=a", "w1=a"}},
		"the others have no room":            {pods: []gang.Pod{head, one}, asks: "1 workers like w1"},
		"all exist":                          {pods: []gang.Pod{head, one, two}, want: []string{"head=a", "w1=a", "w2=host-b"}},
		"one that appears later":             {pods: []gang.Pod{pinned(head, "a"), pinned(one, "a"), two}, want: []string{"w2=host-b"}},
		"the head begins, the workers later": {pods: []gang.Pod{pinned(head, "a"), two}, want: []string{"w2=a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asks := ""
			var got []string
			for _, pin := range gang.Pins(command(), c.pods, nil, func(missing []gang.Missing) bool {
				for _, m := range missing {
					asks += fmt.Sprintf("%d %s like %s", m.Pods, m.Like.PodSet, m.Like.Name)
				}
				return c.room
			}) {
				got = append(got, fmt.Sprintf("%s=%s", pin.Pod.Name, pin.Hostname))
			}
			if diff := cmp.Diff(c.want, got); diff != "" || asks != c.asks {
				t.Errorf("asked for %q, want %q; pins (-want +got):\n%s", asks, c.asks, diff)
			}
		})
	}
}

// TestReplicasInSlicesStartWhole: the domains of replicas are chosen together, so a set in
// slices has all its pods before one is sent.
func TestReplicasInSlicesStartWhole(t *testing.T) {
	t.Parallel()
	c := command()
	c.PodSets[1].Topology = &workload.Topology{SliceSize: 2, SliceLevel: "rack"}
	head, one, two := pod("head", "headgroup"), pod("w1", "workers"), pod("w2", "workers")
	one.Replica, two.Replica = "r", "r"
	room := func([]gang.Missing) bool { return true }
	if got := gang.Pins(c, []gang.Pod{head, one}, nil, room); len(got) > 0 {
		t.Errorf("with half a replica these are pinned: %v", got)
	}
	if got := gang.Pins(c, []gang.Pod{head, one, two}, nil, room); len(got) != 3 {
		t.Errorf("with a whole replica these are pinned: %v, want all", got)
	}
}

// TestPinsOfAGangThatGrows: it starts without the pods that come later, and these
// have places.
func TestPinsOfAGangThatGrows(t *testing.T) {
	t.Parallel()
	grows := command()
	grows.PodSets[1].Later = 2
	if got := gang.Pins(grows, []gang.Pod{pod("head", "headgroup")}, nil, nil); len(got) != 1 {
		t.Errorf("without the workers that come later the head is pinned %v, want it pinned", got)
	}
	got := gang.Pins(grows, []gang.Pod{pinned(pod("head", "headgroup"), "a"), pod("w1", "workers")}, nil, nil)
	if len(got) != 1 || got[0].Pod.Name != "w1" || got[0].Hostname != "a" {
		t.Errorf("a worker that came later is pinned %v, want a", got)
	}
}

func TestCleanupPins(t *testing.T) {
	t.Parallel()
	cleaner := pod("cleaner", "headgroup")
	cleaner.Cleanup, cleaner.UID = true, "cleaner"
	head, worker := pinned(pod("head", "headgroup"), "a"), pod("w1", "workers")
	for name, c := range map[string]struct {
		pods []gang.Pod
		sent map[string]string
		want int
	}{
		"in the place of the head that is gone":  {[]gang.Pod{worker, cleaner}, nil, 1},
		"not while the head is there":            {[]gang.Pod{head, cleaner}, nil, 0},
		"once":                                   {[]gang.Pod{cleaner}, map[string]string{"cleaner": "a"}, 0},
		"a head that never started is no matter": {[]gang.Pod{pod("head", "headgroup"), cleaner}, nil, 1},
		"nothing without it":                     {[]gang.Pod{pod("head", "headgroup"), worker}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			absent := command()
			absent.State, absent.PodSets = event.Absent, nil
			got := gang.CleanupPins(absent, c.pods, c.sent)
			if len(got) != c.want || c.want == 1 && (got[0].Pod.Name != "cleaner" || got[0].Hostname != "a") {
				t.Errorf("%s: pins %v, want %d of the cleaner to a", name, got, c.want)
			}
		})
	}
	if got := gang.Pins(command(), []gang.Pod{cleaner, worker, pod("w2", "workers")}, nil, nil); len(got) > 0 {
		t.Errorf("with the cleaner for a head the gang is pinned: %v", got)
	}
}

func TestNewer(t *testing.T) {
	t.Parallel()
	at := func(attempt int, epoch int64) *event.GangCommand {
		return &event.GangCommand{Attempt: attempt, Epoch: epoch}
	}
	forgotten := at(1, 1)
	forgotten.State = event.Forgotten
	for name, c := range map[string]struct {
		command, known *event.GangCommand
		want           bool
	}{
		"the first":                         {at(1, 1), nil, true},
		"of an older epoch than forgotten":  {at(1, 0), forgotten, false},
		"the next attempt after forgotten":  {at(2, 2), forgotten, true},
		"the same again":                    {at(1, 1), at(1, 1), true},
		"of a later epoch":                  {at(1, 2), at(1, 1), true},
		"of an older epoch":                 {at(1, 1), at(1, 2), false},
		"a later attempt of an older epoch": {at(2, 1), at(1, 2), false},
		"an older attempt of a later epoch": {at(1, 9), at(2, 1), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := gang.Replaces(c.command, c.known); got != c.want {
				t.Errorf("attempt %d of epoch %d after %+v: newer is %t", c.command.Attempt, c.command.Epoch, c.known, got)
			}
		})
	}
}

// Replicas of two hosts, whose names mix with those of the places' domains, stay
// together; one that lost a pod gets it back where the other is.
func TestReplicasStayInOneDomain(t *testing.T) {
	t.Parallel()
	c := &event.GangCommand{Attempt: 2,
		PodSets: []workload.PodSet{{Name: "workers", Role: workload.RoleWorker, Count: 4}},
		Placements: []workload.Placement{
			{PodSet: "workers", Node: "a", Pods: 1, Domain: "r1"}, {PodSet: "workers", Node: "b", Pods: 1, Domain: "r2"},
			{PodSet: "workers", Node: "c", Pods: 1, Domain: "r1"}, {PodSet: "workers", Node: "d", Pods: 1, Domain: "r2"},
		},
	}
	member := func(name, replica string) gang.Pod {
		p := pod(name, "workers")
		p.Replica = replica
		return p
	}
	pods := []gang.Pod{member("w1", "y"), member("w2", "x"), member("w3", "y"), member("w4", "x")}
	where := map[string]string{}
	for _, pin := range gang.Pins(c, pods, nil, nil) {
		where[pin.Pod.Name] = pin.Hostname
	}
	want := map[string]string{"w2": "a", "w4": "c", "w1": "b", "w3": "d"}
	if diff := cmp.Diff(want, where); diff != "" {
		t.Errorf("pins (-want +got):\n%s", diff)
	}
	again := []gang.Pod{pinned(pods[0], "b"), member("w5", "y"), member("w6", "x"), member("w7", "x")}
	where = map[string]string{}
	for _, pin := range gang.Pins(c, again, nil, nil) {
		where[pin.Pod.Name] = pin.Hostname
	}
	want = map[string]string{"w5": "d", "w6": "a", "w7": "c"}
	if diff := cmp.Diff(want, where); diff != "" {
		t.Errorf("pins of replacements (-want +got):\n%s", diff)
	}
}
