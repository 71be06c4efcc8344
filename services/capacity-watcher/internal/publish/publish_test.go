package publish_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap/zaptest"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/capacity"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/localnats"
	"muster.dev/muster/pkg/resource"
	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/services/capacity-watcher/internal/picture"
	"muster.dev/muster/services/capacity-watcher/internal/publish"
)

func connect(t *testing.T) *bus.Bus {
	t.Helper()
	server, err := localnats.Start(t.TempDir(), -1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	b, err := bus.Connect(t.Context(), bus.Options{URL: server.URL(), Name: "test", Logger: zaptest.NewLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if err := b.EnsureStreams(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}

// publisher runs a publisher and returns it, and a channel that gets a value
// after each list.
func publisher(t *testing.T, b *bus.Bus, before publish.History, epoch int64) (*publish.Publisher, <-chan struct{}) {
	t.Helper()
	p, synced, _ := endingPublisher(t, b, before, epoch)
	return p, synced
}

// endingPublisher also returns a channel that gets what the publisher ended with.
func endingPublisher(t *testing.T, b *bus.Bus, before publish.History, epoch int64) (*publish.Publisher, <-chan struct{}, <-chan error) {
	t.Helper()
	synced := make(chan struct{}, 100)
	p := publish.New(publish.Options{
		Bus: b, Cluster: "c", ResyncEvery: time.Hour, Logger: zaptest.NewLogger(t),
		Metrics: publish.NewMetrics(prometheus.NewRegistry()), Synced: func() { synced <- struct{}{} },
		Epoch: epoch, Held: func() error { return nil }, LookEvery: 20 * time.Millisecond,
	}, before)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	done := make(chan struct{})
	go func() { defer close(done); ended <- p.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return p, synced, ended
}

// values returns the payloads of the stream in its order.
func values(t *testing.T, b *bus.Bus) []event.Payload {
	t.Helper()
	deliveries, err := b.LastValues(t.Context(), bus.CapacityStream, bus.CapacityFilter("c"))
	if err != nil {
		t.Fatal(err)
	}
	var payloads []event.Payload
	for _, d := range deliveries {
		_, payload, err := d.Event()
		if err != nil {
			t.Fatal(err)
		}
		payloads = append(payloads, payload)
	}
	return payloads
}

func machine(name string) capacity.Node {
	return capacity.Node{Cluster: "c", Name: name, Ready: true, Allocatable: resource.List{resource.CPU: 1000}}
}

func await(t *testing.T, synced <-chan struct{}) {
	t.Helper()
	select {
	case <-synced:
	case <-time.After(10 * time.Second):
		t.Fatal("no list within 10s")
	}
}

// TestIncompletePicture: of a picture that is being filled nothing is told; once
// it is complete all is, then the list.
func TestIncompletePicture(t *testing.T) {
	t.Parallel()
	b := connect(t)
	p, synced := publisher(t, b, publish.History{}, 7)
	p.Apply(func(picture *picture.Picture) { picture.SetNode(machine("n2")); picture.SetNode(machine("n1")) })
	if got := values(t, b); len(got) != 0 {
		t.Errorf("told before the picture was complete: %v", got)
	}
	p.Complete()
	await(t, synced)
	want := []event.Payload{
		&event.NodeObserved{Version: event.Version{Session: 7, Seq: 1}, Node: machine("n2")},
		&event.NodeObserved{Version: event.Version{Session: 7, Seq: 2}, Node: machine("n1")},
		&event.CapacitySynced{Version: event.Version{Session: 7, Seq: 3}, Cluster: "c", Nodes: []string{"n1", "n2"}},
	}
	if diff := cmp.Diff(want, values(t, b)); diff != "" {
		t.Errorf("stream (-want +got):\n%s", diff)
	}
}

// TestAfterAnother: a watcher tells of what is gone since its predecessor told.
func TestAfterAnother(t *testing.T) {
	t.Parallel()
	b := connect(t)
	first, synced := publisher(t, b, publish.History{}, 1000)
	first.Apply(func(p *picture.Picture) {
		p.SetNode(machine("n1"))
		p.SetMember(picture.Pod{Name: "head"}, picture.Member{Workload: "w", GangPod: event.GangPod{Name: "head", Phase: "Running"}})
	})
	first.Complete()
	await(t, synced)
	before, err := publish.ReadHistory(t.Context(), b, "c", zaptest.NewLogger(t))
	if err != nil {
		t.Fatal(err)
	}
	want := publish.History{Session: 1000, Told: []picture.Key{{Node: "n1"}, {Gang: "w"}}}
	if diff := cmp.Diff(want, before, cmpopts.IgnoreUnexported(publish.History{})); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	second, synced := publisher(t, b, before, before.Session+1)
	second.Complete()
	await(t, synced)
	stream := []event.Payload{
		&event.NodeRemoved{Version: event.Version{Session: 1001, Seq: 1}, Cluster: "c", Node: "n1"},
		&event.GangObserved{Version: event.Version{Session: 1001, Seq: 2}, Cluster: "c", Workload: workload.ID("w"), Pods: []event.GangPod{}},
		&event.CapacitySynced{Version: event.Version{Session: 1001, Seq: 3}, Cluster: "c"},
	}
	if diff := cmp.Diff(stream, values(t, b)); diff != "" {
		t.Errorf("stream (-want +got):\n%s", diff)
	}
}

// TestReplacedWhileItStoodStill: what a watcher says that has been replaced is not
// taken by the server, which has its successor's word; and it learns of it.
func TestReplacedWhileItStoodStill(t *testing.T) {
	t.Parallel()
	b := connect(t)
	old, synced, ended := endingPublisher(t, b, publish.History{}, 1)
	old.Apply(func(p *picture.Picture) { p.SetNode(machine("n1")) })
	old.Complete()
	await(t, synced)
	before, err := publish.ReadHistory(t.Context(), b, "c", zaptest.NewLogger(t))
	if err != nil {
		t.Fatal(err)
	}
	second, synced := publisher(t, b, before, 2)
	smaller := machine("n1")
	smaller.Allocatable = resource.List{"cpu": 1}
	second.Apply(func(p *picture.Picture) { p.SetNode(smaller) })
	second.Complete()
	await(t, synced)
	// The old one wakes with news of before.
	old.Apply(func(p *picture.Picture) {
		larger := machine("n1")
		larger.Allocatable = resource.List{"cpu": 1_000_000}
		p.SetNode(larger)
	})
	select {
	case err := <-ended:
		if !errors.Is(err, bus.ErrReplaced) {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it goes on")
	}
	for _, payload := range values(t, b) {
		if node, ok := payload.(*event.NodeObserved); ok && (node.Version.Session != 2 || node.Node.Allocatable["cpu"] != 1) {
			t.Errorf("the stream has %+v", node)
		}
	}
}

// TestLargeGangs: the news of a large gang is held back for a moment, and what it
// ends with is told; a list does not wait for it.
func TestLargeGangs(t *testing.T) {
	t.Parallel()
	b := connect(t)
	p, synced := publisher(t, b, publish.History{}, 1)
	const pods, changes = 512, 200
	set := func(name, phase string) {
		p.Apply(func(p *picture.Picture) {
			p.SetMember(picture.Pod{Name: name}, picture.Member{Workload: "w", GangPod: event.GangPod{Name: name, Phase: phase}})
		})
	}
	for i := range pods {
		set("pod-"+time.Duration(i).String(), "Pending")
	}
	p.Complete()
	await(t, synced)
	following, err := b.Follow(t.Context(), bus.CapacityStream, bus.CapacityFilter("c"))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for i := range changes {
		set("pod-"+time.Duration(i).String(), "Running")
	}
	last := "pod-" + time.Duration(changes-1).String()
	for told := 0; ; {
		d := <-following.C
		_, payload, err := d.Event()
		if err != nil {
			t.Fatal(err)
		}
		gang, ok := payload.(*event.GangObserved)
		if !ok {
			continue
		}
		told++
		for _, pod := range gang.Pods {
			if pod.Name != last || pod.Phase != "Running" {
				continue
			}
			if most := 2 + int(time.Since(began)/(pods*200*time.Microsecond)); told > most { // the first and what was told before
				t.Errorf("%d changes were told in %d messages, want at most %d", changes, told, most)
			}
			return
		}
	}
}

// TestManyNodes: more than one batch arrives whole, and the list after it.
func TestManyNodes(t *testing.T) {
	t.Parallel()
	b := connect(t)
	p, synced := publisher(t, b, publish.History{}, 1)
	const nodes = 5000
	p.Apply(func(p *picture.Picture) {
		for i := range nodes {
			p.SetNode(machine("n" + time.Duration(i).String()))
		}
	})
	p.Complete()
	await(t, synced)
	got := values(t, b)
	if len(got) != nodes+1 {
		t.Fatalf("the stream has %d values, want %d", len(got), nodes+1)
	}
	list, ok := got[nodes].(*event.CapacitySynced)
	if !ok || len(list.Nodes) != nodes {
		t.Errorf("the last value is %T, want a list of %d nodes", got[nodes], nodes)
	}
}
