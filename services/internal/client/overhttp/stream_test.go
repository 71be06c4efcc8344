package overhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// streams is a server whose connections end after one more event each; the last is refused.
func streams(t *testing.T, phases ...workload.Phase) *Client {
	t.Helper()
	var connections atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := int(connections.Add(1))
		if n > len(phases) {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error": "unknown caller"}`)
			return
		}
		for _, phase := range phases[max(n-2, 0):n] { // the present state first, as after every connection
			fmt.Fprintf(w, ": alive\n\nid: 1\nevent: dev.muster.workload.changed.v1\ndata: {\"id\": \"a\", \"queue\": \"q\", \"phase\": %q}\n\n", phase)
		}
	}))
	t.Cleanup(server.Close)
	client, err := New(Settings{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestALifeGoesOnAfterAConnection: each phase comes once, however often the connection ends,
// and a refusal ends the wait.
func TestALifeGoesOnAfterAConnection(t *testing.T) {
	t.Parallel()
	phases := []workload.Phase{workload.Queued, workload.Admitted, workload.Running}
	client := streams(t, phases...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	life := client.Follow(ctx, workload.Record{Workload: workload.Workload{ID: "a", Queue: "q"}})
	var seen []workload.Phase
	for {
		step, err := life.Next(ctx)
		if err != nil {
			var refused *query.ProblemError
			if !errors.As(err, &refused) || refused.Message != "unknown caller" {
				t.Errorf("it ends with %v, want the refusal", err)
			}
			break
		}
		seen = append(seen, step.Record.Phase)
	}
	if diff := cmp.Diff(phases, seen); diff != "" {
		t.Errorf("the phases (-want +got):\n%s", diff)
	}
}

// TestWhatIsAskedMayBeDoneBeforeTheStreamOpens: the stream begins with the present state, in
// which only the priority, the hold or the last checkpoint may be another than in the known one.
func TestWhatIsAskedMayBeDoneBeforeTheStreamOpens(t *testing.T) {
	t.Parallel()
	known := workload.Record{Workload: workload.Workload{ID: "a", Queue: "q"}, Phase: workload.Queued}
	ranked, held := known, known
	ranked.Priority, held.Hold = 7, &workload.Hold{By: "ann"}
	saved := known
	saved.SetSaved((*workload.Saved)(nil).Next(0, time.Unix(1e9, 0), time.Unix(1e9, 0)))
	for name, other := range map[string]workload.Record{"priority": ranked, "hold": held, "checkpoint": saved} {
		t.Run(name, func(t *testing.T) {
			if sameStep(known, other) || !sameStep(other, other) {
				t.Errorf("another %s is the same state, or the same is another", name)
			}
		})
	}
}

// TestWhatIsNoEvent: a stream with something else is an error, and not passed over.
func TestWhatIsNoEvent(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]Event{
		"unknown type": {Type: "dev.muster.none.v9", Data: []byte(`{}`)}, "no JSON": {Type: "dev.muster.workload.changed.v1", Data: []byte(`{`)},
		"another event": {Type: "dev.muster.workload.cancel.v1", Data: []byte(`{}`)},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := e.Step(); err == nil {
				t.Errorf("%s is a step", name)
			}
		})
	}
}

// TestARejectionIsAStep: the stream of a workload tells that another submission with its key
// was rejected, and goes on.
func TestARejectionIsAStep(t *testing.T) {
	t.Parallel()
	e := Event{Type: "dev.muster.workload.rejected.v1", Data: []byte(`{"workload": "a", "queue": "q", "messageId": "m", "reason": {"message": "other content"}}`)}
	step, err := e.Step()
	if err != nil || step.Record.Phase != workload.Rejected || step.Record.ID != "a" || step.MessageID != "m" || step.Record.Reason.Message != "other content" {
		t.Errorf("%+v, %v; want the rejection of workload a with its reason", step, err)
	}
}
