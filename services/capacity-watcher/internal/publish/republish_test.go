package publish_test

import (
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

// TestLostFromTheStream: values that the stream loses while the connection is up are
// republished.
func TestLostFromTheStream(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*testing.T, *bus.Bus, jetstream.Stream) error{
		"purge": func(t *testing.T, _ *bus.Bus, s jetstream.Stream) error { return s.Purge(t.Context()) },
		"made again": func(t *testing.T, b *bus.Bus, _ jetstream.Stream) error {
			js, err := jetstream.New(b.Conn())
			if err != nil {
				return err
			}
			if err := js.DeleteStream(t.Context(), bus.CapacityStream); err != nil {
				return err
			}
			return b.EnsureStreams(t.Context())
		},
		"first subject purged": func(t *testing.T, _ *bus.Bus, s jetstream.Stream) error {
			return s.Purge(t.Context(), jetstream.WithPurgeSubject(event.NodeSubject("c", "n1")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := connect(t)
			p, synced := publisher(t, b, publish.History{}, 7)
			p.Apply(func(seen *observed.Cache) {
				seen.SetNode(machine("n1"))
				seen.SetNode(machine("n2"))
				seen.SetMember(observed.Pod{Namespace: "a", Name: "p"}, observed.Member{Workload: "w", GangPod: event.GangPod{Name: "p", Node: "n1"}})
			})
			p.Complete()
			await(t, synced)
			js, err := jetstream.New(b.Conn())
			if err != nil {
				t.Fatal(err)
			}
			stream, err := js.Stream(t.Context(), bus.CapacityStream)
			if err != nil {
				t.Fatal(err)
			}
			if err := lose(t, b, stream); err != nil {
				t.Fatal(err)
			}
			deadline := time.After(20 * time.Second)
			for len(values(t, b)) < 4 { // two nodes, a gang and the list
				select {
				case <-deadline:
					t.Fatalf("not republished: the stream has %v", values(t, b))
				case <-time.After(20 * time.Millisecond):
				}
			}
		})
	}
}

// TestAnswer: a request for a gang or a node, observed or not, gets one answer.
func TestAnswer(t *testing.T) {
	t.Parallel()
	b := connect(t)
	asked := make(chan *event.ReportWanted)
	p := publish.New(publish.Options{
		Bus: b, Cluster: "c", ResyncEvery: time.Hour, Logger: zaptest.NewLogger(t), Metrics: publish.NewMetrics(prometheus.NewRegistry()),
		Synced: func() {}, Epoch: 7, Held: func() error { return nil }, Asked: asked,
	}, publish.History{})
	p.Apply(func(seen *observed.Cache) {
		seen.SetNode(machine("n1"))
		seen.SetMember(observed.Pod{Namespace: "a", Name: "p"}, observed.Member{Workload: "w", GangPod: event.GangPod{Name: "p", Node: "n1"}})
	})
	p.Complete()
	done := make(chan struct{})
	go func() { defer close(done); _ = p.Run(t.Context()) }()
	t.Cleanup(func() { <-done })
	for _, q := range []event.ReportWanted{
		{Cluster: "c", Workload: "w", Ask: "1/1"}, {Cluster: "c", Workload: "unknown", Ask: "1/2"}, {Cluster: "c", Node: "n1", Ask: "1/3"},
		{Cluster: "c", Node: "unknown", Ask: "1/4"}, {Cluster: "other", Workload: "w", Ask: "1/5"},
	} {
		asked <- &q
	}
	want := map[string]bool{"1/1": true, "1/2": true, "1/3": true}
	deadline := time.After(20 * time.Second)
	for {
		got := map[string]bool{}
		removed := false
		for _, payload := range values(t, b) {
			switch observed := payload.(type) {
			case *event.GangObserved:
				got[observed.Answers] = true
			case *event.NodeObserved:
				got[observed.Answers] = true
			case *event.NodeRemoved:
				removed = observed.Node == "unknown"
			}
		}
		delete(got, "")
		if len(got) == len(want) && got["1/1"] && got["1/2"] && got["1/3"] && removed {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("answers are %v, a removed node %t; want %v", got, removed, want)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
