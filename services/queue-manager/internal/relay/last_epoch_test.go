package relay_test

import (
	"fmt"
	"testing"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/internal/relay"
)

// What other services publish, and queue-manager beside the outbox, does not hide the epoch of the
// last message before it.
func TestTheLastEpochIsFoundBehindOtherMessages(t *testing.T) {
	t.Parallel()
	cluster, of := event.ClusterEventsSubject("c"), event.EventsSubject("q", "w1")
	for name, c := range map[string]struct {
		stream, subject, id string
		behind              int
	}{
		"nothing":                     {stream: bus.EventsStream},
		"the state of a cluster":      {bus.EventsStream, cluster, "queue-manager/cluster/7/%d", 1},
		"an answer beside the outbox": {bus.EventsStream, of, "queue-manager/again/w1/q/%d/1", 1},
		"many refusals of intake":     {bus.EventsStream, of, "intake/%d", 250},
		"a question of a check":       {bus.DispatchStream, event.CheckSubject("check", "w1"), "queue-manager/7/%d", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			put := func(subject, id string, payload event.Payload) {
				t.Helper()
				state, err := w.bus.State(t.Context(), c.stream)
				if err != nil {
					t.Fatal(err)
				}
				published, err := w.bus.PublishNext(subject, id, encode(t, id, payload), 0, bus.End{Sequence: state.Last})
				if err == nil {
					_, err = published.Stored(t.Context())
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			record := workload.Record{Workload: workload.Workload{ID: "w1", Queue: "q"}, Phase: workload.Queued, Times: workload.Times{Submitted: time.Unix(1, 0)}}
			if c.stream == bus.DispatchStream {
				put(event.DispatchSubject("c", "w1"), "queue-manager/7/1001", command("w1", 7, 1))
			} else {
				put(of, "queue-manager/7/1001", &event.WorkloadChanged{Record: record})
			}
			for i := range c.behind {
				put(c.subject, fmt.Sprintf(c.id, i), &event.WorkloadChanged{Record: record})
			}
			if epoch, err := relay.LastEpoch(t.Context(), w.bus); err != nil || epoch != 7 {
				t.Errorf("the last epoch is %d, %v; want 7", epoch, err)
			}
		})
	}
}
