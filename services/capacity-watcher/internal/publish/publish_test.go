package publish_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/kube/lease"
	"muster.dev/muster/pkg/local/natsserver"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/capacity-watcher/internal/observed"
	"muster.dev/muster/services/capacity-watcher/internal/publish"
)

func connect(t *testing.T) *bus.Bus {
	t.Helper()
	server, err := natsserver.Start(t.TempDir(), -1)
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

// publisher runs a publisher; the channel gets a value after each list.
func publisher(t *testing.T, b *bus.Bus, before publish.History, epoch int64) (*publish.Publisher, <-chan struct{}) {
	t.Helper()
	p, synced, _ := endingPublisher(t, b, before, epoch)
	return p, synced
}

// endingPublisher also returns a channel that gets Run's error.
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
	deliveries, err := b.LastValues(t.Context(), bus.CapacityStream, event.CapacityFilter("c"))
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

// TestALeaseThatLapses: what changes while the lease is not held is published when it is again,
// in the same term.
func TestALeaseThatLapses(t *testing.T) {
	t.Parallel()
	b := connect(t)
	synced, asked := make(chan struct{}, 100), make(chan struct{}, 100)
	var lapsed atomic.Bool
	p := publish.New(publish.Options{
		Bus: b, Cluster: "c", ResyncEvery: time.Hour, Logger: zaptest.NewLogger(t),
		Metrics: publish.NewMetrics(prometheus.NewRegistry()), Synced: func() { synced <- struct{}{} }, Epoch: 7,
		Held: func() error {
			if !lapsed.Load() {
				return nil
			}
			select {
			case asked <- struct{}{}:
			default:
			}
			return fmt.Errorf("%w, or may", lease.ErrLost)
		},
	}, publish.History{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	lapsed.Store(true)
	p.Apply(func(cache *observed.Cache) { cache.SetNode(machine("n")) })
	p.Complete()
	for range 2 { // it tries again
		select {
		case <-asked:
		case err := <-ended:
			t.Fatalf("the publisher has ended with %v", err)
		}
	}
	if got := values(t, b); len(got) != 0 {
		t.Errorf("published while the lease was not held: %v", got)
	}
	lapsed.Store(false)
	await(t, synced)
	if got := values(t, b); len(got) == 0 {
		t.Error("nothing is published although the lease is held again")
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the publisher ended with %v", err)
	}
}

// TestIncompleteCache: nothing is published before the cache is complete; then
// everything is, followed by the list.
func TestIncompleteCache(t *testing.T) {
	t.Parallel()
	b := connect(t)
	p, synced := publisher(t, b, publish.History{}, 7)
	p.Apply(func(cache *observed.Cache) { cache.SetNode(machine("n2")); cache.SetNode(machine("n1")) })
	if got := values(t, b); len(got) != 0 {
		t.Errorf("published before the cache was complete: %v", got)
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

// TestKindsAreListed: the list is published again when the cluster serves other kinds.
func TestKindsAreListed(t *testing.T) {
	t.Parallel()
	b := connect(t)
	p, synced := publisher(t, b, publish.History{}, 7)
	last := func() *event.CapacitySynced {
		t.Helper()
		await(t, synced)
		all := values(t, b)
		list, ok := all[len(all)-1].(*event.CapacitySynced)
		if !ok {
			t.Fatalf("the last value is %T", all[len(all)-1])
		}
		return list
	}
	p.Apply(func(c *observed.Cache) { c.SetKinds([]workload.ObjectKind{"v1 Pod"}) })
	p.Complete()
	if got := last().Kinds; !slices.Equal(got, []workload.ObjectKind{"v1 Pod"}) {
		t.Errorf("the first list has the kinds %v", got)
	}
	p.Apply(func(c *observed.Cache) { c.SetKinds([]workload.ObjectKind{"kubeflow.org/v1 PyTorchJob", "v1 Pod"}) })
	if got := last().Kinds; !slices.Equal(got, []workload.ObjectKind{"kubeflow.org/v1 PyTorchJob", "v1 Pod"}) {
		t.Errorf("after a kind was installed the list has the kinds %v", got)
	}
}

// TestKindsOfTheLastListHold: a new watcher whose API server does not say which kinds it serves
// lists those of its predecessor, until it has read them. Otherwise queue-manager would take
// every kind as served, and admit a gang that cannot be created.
func TestKindsOfTheLastListHold(t *testing.T) {
	t.Parallel()
	b := connect(t)
	before := []workload.ObjectKind{"v1 Pod", "v1 Service"}
	first, synced := publisher(t, b, publish.History{}, 7)
	first.Apply(func(c *observed.Cache) { c.SetKinds(before) })
	first.Complete()
	await(t, synced)
	history, err := publish.ReadHistory(t.Context(), b, "c", zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	next, synced := publisher(t, b, history, 8)
	last := func() *event.CapacitySynced {
		t.Helper()
		await(t, synced)
		all := values(t, b)
		list, ok := all[len(all)-1].(*event.CapacitySynced)
		if !ok || list.Version.Session != 8 {
			t.Fatalf("the last value is %+v", all[len(all)-1])
		}
		return list
	}
	next.Complete()
	if got := last().Kinds; !slices.Equal(got, before) {
		t.Errorf("before it has read them the kinds are %v, want %v", got, before)
	}
	next.Apply(func(c *observed.Cache) { c.SetKinds([]workload.ObjectKind{"v1 Pod"}) })
	if got := last().Kinds; !slices.Equal(got, []workload.ObjectKind{"v1 Pod"}) {
		t.Errorf("after it has read them the kinds are %v", got)
	}
	next.Apply(func(c *observed.Cache) { c.SetKinds(nil) })
	if got := last().Kinds; len(got) != 0 {
		t.Errorf("when they are unknown the kinds are %v", got)
	}
}

// TestAfterAnother: a watcher publishes what its predecessor saw and is gone now.
func TestAfterAnother(t *testing.T) {
	t.Parallel()
	b := connect(t)
	first, synced := publisher(t, b, publish.History{}, 1000)
	first.Apply(func(p *observed.Cache) {
		p.SetNode(machine("n1"))
		p.SetMember(observed.Pod{Name: "head"}, observed.Member{Workload: "w", GangPod: event.GangPod{Name: "head", Phase: "Running"}})
	})
	first.Complete()
	await(t, synced)
	before, err := publish.ReadHistory(t.Context(), b, "c", zaptest.NewLogger(t))
	if err != nil {
		t.Fatal(err)
	}
	want := publish.History{Session: 1000, Present: []observed.Key{{Node: "n1"}, {Gang: "w"}}}
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

// TestReplacedWhileItStoodStill: the server refuses a replaced watcher's messages, and
// the watcher ends.
func TestReplacedWhileItStoodStill(t *testing.T) {
	t.Parallel()
	b := connect(t)
	old, synced, ended := endingPublisher(t, b, publish.History{}, 1)
	old.Apply(func(p *observed.Cache) { p.SetNode(machine("n1")) })
	old.Complete()
	await(t, synced)
	before, err := publish.ReadHistory(t.Context(), b, "c", zaptest.NewLogger(t))
	if err != nil {
		t.Fatal(err)
	}
	second, synced := publisher(t, b, before, 2)
	smaller := machine("n1")
	smaller.Allocatable = resource.List{"cpu": 1}
	second.Apply(func(p *observed.Cache) { p.SetNode(smaller) })
	second.Complete()
	await(t, synced)
	// The old one wakes with an outdated change.
	old.Apply(func(p *observed.Cache) {
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

// TestLargeGangs: a large gang's messages are throttled, the last state is published,
// and a list does not wait for it.
func TestLargeGangs(t *testing.T) {
	t.Parallel()
	b := connect(t)
	p, synced := publisher(t, b, publish.History{}, 1)
	const pods, changes = 512, 200
	set := func(name, phase string) {
		p.Apply(func(p *observed.Cache) {
			p.SetMember(observed.Pod{Name: name}, observed.Member{Workload: "w", GangPod: event.GangPod{Name: name, Phase: phase}})
		})
	}
	for i := range pods {
		set("pod-"+time.Duration(i).String(), "Pending")
	}
	p.Complete()
	await(t, synced)
	following, err := b.Follow(t.Context(), bus.CapacityStream, event.CapacityFilter("c"))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for i := range changes {
		set("pod-"+time.Duration(i).String(), "Running")
	}
	last := "pod-" + time.Duration(changes-1).String()
	for published := 0; ; {
		d := <-following.C
		_, payload, err := d.Event()
		if err != nil {
			t.Fatal(err)
		}
		gang, ok := payload.(*event.GangObserved)
		if !ok {
			continue
		}
		published++
		for _, pod := range gang.Pods {
			if pod.Name != last || pod.Phase != "Running" {
				continue
			}
			if most := 2 + int(time.Since(began)/(pods*200*time.Microsecond)); published > most { // the first and earlier ones
				t.Errorf("%d changes made %d messages, want at most %d", changes, published, most)
			}
			return
		}
	}
}

// TestManyNodes: more than one batch arrives complete, with the list.
func TestManyNodes(t *testing.T) {
	t.Parallel()
	b := connect(t)
	p, synced := publisher(t, b, publish.History{}, 1)
	const nodes = 5000
	p.Apply(func(p *observed.Cache) {
		for i := range nodes {
			p.SetNode(machine("n" + time.Duration(i).String()))
		}
	})
	p.Complete()
	await(t, synced)
	// The slow repetition of everything may begin while the stream is read.
	named := map[string]bool{}
	var list *event.CapacitySynced
	for _, value := range values(t, b) {
		switch value := value.(type) {
		case *event.CapacitySynced:
			list = value
		case *event.NodeObserved:
			named[value.Node.Name] = true
		default:
			t.Errorf("the stream has a %T", value)
		}
	}
	if len(named) != nodes {
		t.Errorf("the stream has %d nodes, want %d", len(named), nodes)
	}
	if list == nil || len(list.Nodes) != nodes {
		t.Errorf("the list is %v, want one of %d nodes", list, nodes)
	}
}

// TestAnObservationThatIsTooLarge: the others, before and behind it, are published, and the list
// that follows them.
func TestAnObservationThatIsTooLarge(t *testing.T) {
	t.Parallel()
	b := connect(t)
	p, synced := publisher(t, b, publish.History{}, 7)
	p.Apply(func(seen *observed.Cache) {
		large := machine("b")
		large.Labels = map[string]string{"l": strings.Repeat("x", int(b.Conn().MaxPayload()))}
		seen.SetNode(machine("a"))
		seen.SetNode(large)
		seen.SetNode(machine("c"))
	})
	p.Complete()
	await(t, synced)
	var names []string
	for _, payload := range values(t, b) {
		if seen, ok := payload.(*event.NodeObserved); ok {
			names = append(names, seen.Node.Name)
		}
	}
	if want := []string{"a", "c"}; !slices.Equal(names, want) {
		t.Errorf("published are %v, want %v", names, want)
	}
}
