package publish_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/capacity-watcher/internal/observed"
	"muster.dev/muster/services/capacity-watcher/internal/publish"
)

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
