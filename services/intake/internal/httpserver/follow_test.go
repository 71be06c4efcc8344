package httpserver

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/testkit/bustest"
)

// TestChangesOfClustersAreForOperators: the stream of all workloads has the states of clusters for
// an operator. A tenant of more than 16 queues, for whom all events are read, gets its own workloads
// alone.
func TestChangesOfClustersAreForOperators(t *testing.T) {
	t.Parallel()
	b := bustest.Connect(t)
	w := newWorldOver(t, b, DefaultLimits())
	for i := range mostSubjects + 1 {
		w.more = append(w.more, query.Queue{Name: fmt.Sprintf("q%d", i), Namespaces: []string{"n"}, Submitters: []workload.Submitters{{Who: []string{"http/tina"}}}})
	}
	publish := func(subject string, payload event.Payload) {
		e, err := event.New(event.NewID(), "test", time.Now(), payload)
		if err == nil {
			err = b.Publish(t.Context(), subject, e)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for id, queue := range map[workload.ID]string{own: "q1", foreign: "b"} {
		publish(event.EventsSubject(queue, id), &event.WorkloadChanged{Record: workload.Record{Workload: workload.Workload{ID: id, Queue: queue, Namespace: "n"}, Phase: workload.Queued}})
	}
	publish(event.ClusterEventsSubject("east"), &event.ClusterChanged{Cluster: "east", State: "silent", Was: "ready"})
	const changed = "event: dev.muster.cluster.changed.v1\ndata: {\"cluster\":\"east\",\"state\":\"silent\",\"was\":\"ready\",\"live\":0}\n\n"
	for caller, want := range map[string]struct {
		workloads int
		cluster   bool
	}{"olga": {2, true}, "tina": {1, false}} {
		t.Run(caller, func(t *testing.T) {
			answer, body := w.ask(t, caller, http.MethodGet, "/v1/events?since=2026-01-01T00:00:00Z&follow=false", "")
			if got := strings.Count(body, "event: dev.muster.workload.changed.v1"); answer.StatusCode != http.StatusOK || got != want.workloads {
				t.Errorf("%d with %d events of workloads, want %d:\n%s", answer.StatusCode, got, want.workloads, body)
			}
			if strings.Contains(body, changed) != want.cluster || strings.Contains(body, "cluster.changed") != want.cluster {
				t.Errorf("the change of a cluster is to be there: %t:\n%s", want.cluster, body)
			}
		})
	}
}
