package publish_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap/zaptest"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/services/capacity-watcher/internal/observed"
	"muster.dev/muster/services/capacity-watcher/internal/publish"
)

// repeated is a publisher that looks for lost values once an hour, and has published a list
// of nodes. The second one is in the middle of the stream.
type repeated struct {
	*publish.Publisher
	bus      *bus.Bus
	stream   jetstream.Stream
	registry *prometheus.Registry
}

func newRepeated(t *testing.T, nodes int) *repeated {
	t.Helper()
	r := &repeated{bus: connect(t), registry: prometheus.NewRegistry()}
	js, err := jetstream.New(r.bus.Conn())
	if err != nil {
		t.Fatal(err)
	}
	if r.stream, err = js.Stream(t.Context(), bus.CapacityStream); err != nil {
		t.Fatal(err)
	}
	r.Publisher = publish.New(publish.Options{
		Bus: r.bus, Cluster: "c", ResyncEvery: time.Hour, LookEvery: time.Hour, Logger: zaptest.NewLogger(t), Metrics: publish.NewMetrics(r.registry),
		Synced: func() {}, Epoch: 7, Held: func() error { return nil },
	}, publish.History{})
	r.Apply(func(seen *observed.Cache) {
		for i := range nodes {
			seen.SetNode(machine(node(i)))
		}
	})
	r.Complete()
	r.publish(t)
	return r
}

func node(i int) string { return fmt.Sprintf("n%04d", i) }

// publish publishes what is marked, and returns how many values that were.
func (r *repeated) publish(t *testing.T) int {
	t.Helper()
	before := r.published(t)
	if err := r.PublishChanges(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r.published(t) - before
}

// published is how many values have ever been published, without lists.
func (r *repeated) published(t *testing.T) int {
	t.Helper()
	families, err := r.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "muster_capacity_published_total" {
			return int(family.GetMetric()[0].GetCounter().GetValue())
		}
	}
	t.Fatal("the registry has no counter")
	return 0
}

// lose purges the second node from the stream.
func (r *repeated) lose(t *testing.T) {
	t.Helper()
	if err := r.stream.Purge(t.Context(), jetstream.WithPurgeSubject(event.NodeSubject("c", node(1)))); err != nil {
		t.Fatal(err)
	}
	if r.has(t) {
		t.Fatal("the stream has the node that was purged")
	}
}

// has is whether the stream has the second node.
func (r *repeated) has(t *testing.T) bool {
	t.Helper()
	return slices.ContainsFunc(values(t, r.bus), func(payload event.Payload) bool {
		seen, ok := payload.(*event.NodeObserved)
		return ok && seen.Node.Name == node(1)
	})
}

// TestRepublishNext: a round publishes each value once, with those that the stream has lost
// without a sign of it.
func TestRepublishNext(t *testing.T) {
	t.Parallel()
	const nodes = 5
	r := newRepeated(t, nodes)
	r.lose(t)
	for i := range nodes {
		r.RepublishNext()
		if got := r.publish(t); got != 1 {
			t.Errorf("part %d has %d values, want one", i+1, got)
		}
		if got := r.has(t); got != (i >= 1) {
			t.Errorf("after part %d the stream has the second node: %t", i+1, got)
		}
	}
}

// TestRoundsOfAPublisher: a publisher that runs repeats everything, part after part.
func TestRoundsOfAPublisher(t *testing.T) {
	t.Parallel()
	r := newRepeated(t, 3)
	r.lose(t)
	done := make(chan struct{})
	go func() { defer close(done); _ = r.Run(t.Context()) }()
	t.Cleanup(func() { <-done })
	deadline := time.After(10 * bus.RoundStep)
	for !r.has(t) {
		select {
		case <-deadline:
			t.Fatal("what the stream has lost was not published again")
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// TestAnotherLeaderAsks: the first question of each leader compares the whole stream, and makes
// the next round a hasty one.
func TestAnotherLeaderAsks(t *testing.T) {
	t.Parallel()
	const nodes, slow, hasty = 200, 2, 20
	r := newRepeated(t, nodes)
	for i, step := range []struct {
		question event.ReportWanted
		another  bool
	}{
		{event.ReportWanted{Cluster: "c", Epoch: 2}, true},
		{event.ReportWanted{Cluster: "c", Epoch: 2}, false},
		{event.ReportWanted{Cluster: "other", Epoch: 3}, false},
		{event.ReportWanted{Cluster: "c", Epoch: 3}, true},
	} {
		r.lose(t)
		r.Answer(t.Context(), &step.question)
		r.publish(t)
		if got := r.has(t); got != step.another {
			t.Errorf("question %d: the lost node is there: %t, want %t", i+1, got, step.another)
		}
		want := slow
		if step.another {
			want = hasty
		}
		for part := range 11 { // ten of haste, and one
			r.RepublishNext()
			if got := r.publish(t); part == 0 && got != want {
				t.Errorf("question %d: the next part has %d values, want %d", i+1, got, want)
			}
		}
	}
}
