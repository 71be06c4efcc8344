package cli_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/testkit/bustest"
	"muster.dev/muster/services/internal/client/exit"
)

// TestASubmissionThatWasPurgedIsSentAgain: the stream of submissions is purged before
// intake has read it, and `muster submit` hears nothing.
func TestASubmissionThatWasPurgedIsSentAgain(t *testing.T) {
	t.Parallel()
	b := bustest.Connect(t)
	stream, ended := submit(t, b)
	awaitStored(t, stream)
	if err := stream.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitStored(t, stream)
	id := event.WorkloadID("laptop", "1")
	publishEvent(t, b, id, &event.WorkloadChanged{Record: workload.Record{
		Workload: workload.Workload{ID: id, Queue: "q", Kind: "RayJob", Name: "a"}, Phase: workload.Queued}})
	if got := <-ended; got.code != exit.OK || !strings.Contains(got.out, "queued") {
		t.Errorf("%+v, want exit code 0 and that it is queued", got)
	}
}

// submit runs `muster submit` of the job with more arguments, as submission 1 of the laptop to
// queue q. It returns the stream of submissions, and what gives the result.
func submit(t *testing.T, b *bus.Bus, more ...string) (jetstream.Stream, <-chan result) {
	t.Helper()
	js, err := jetstream.New(b.Conn())
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), bus.SubmitStream)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan result, 1)
	arguments := append([]string{"submit", "-f", "-", "-q", "q", "--source", "laptop", "--id", "1", "--timeout", "60s", "--nats-url", b.Conn().ConnectedUrl()}, more...)
	go func() { ended <- run(t, job, arguments...) }()
	return stream, ended
}

// awaitStored waits until a stream has a message.
func awaitStored(t *testing.T, stream jetstream.Stream) {
	t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	deadline := time.After(30 * time.Second)
	for {
		info, err := stream.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if info.State.Msgs > 0 {
			return
		}
		select {
		case <-again.C:
		case <-deadline:
			t.Fatal("nothing was submitted within 30s")
		}
	}
}

// tell publishes an event of a workload, as queue-manager and intake do.
func publishEvent(t *testing.T, b *bus.Bus, id workload.ID, payload event.Payload) {
	t.Helper()
	e, err := event.New(event.NewID(), "test", time.Now(), payload)
	if err == nil {
		err = b.Publish(t.Context(), event.EventsSubject("q", id), e)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestEventsOfANamespace: --namespace shows no events of others, and no rejections, of which
// it is not known; those of a named workload stay.
func TestEventsOfANamespace(t *testing.T) {
	t.Parallel()
	b := bustest.Connect(t)
	id := event.WorkloadID("laptop", "1")
	record := workload.Record{Workload: workload.Workload{ID: id, Queue: "q", Kind: "RayJob", Name: "a", Namespace: "team"}, Phase: workload.Succeeded, Holding: true}
	publishEvent(t, b, id, &event.WorkloadChanged{Record: record})
	record.Holding = false
	publishEvent(t, b, id, &event.WorkloadChanged{Record: record})
	publishEvent(t, b, "refused", &event.WorkloadRejected{Workload: "refused", Queue: "q", Reason: workload.Reason{Kind: workload.ReasonInvalid, Message: "no head"}})
	events := func(args ...string) result {
		return run(t, "", append([]string{"events", "--nats-url", b.Conn().ConnectedUrl()}, args...)...)
	}
	if got := events("-n", "nope"); got.code != exit.OK || got.out != "" {
		t.Errorf("of another namespace: %+v", got)
	}
	got := events("-n", "team")
	if got.code != exit.OK || strings.Count(got.out, "\n") != 2 || !strings.Contains(got.out, "succeeded (pods remain)  rayjob/a\n") || !strings.Contains(got.out, "succeeded   rayjob/a\n") {
		t.Errorf("of the namespace: %+v; want the end, and the end of the pods", got)
	}
	if got := events(); strings.Count(got.out, "\n") != 3 || !strings.Contains(got.out, "no head") {
		t.Errorf("of all: %+v", got)
	}
}

// TestEventsSince: --since leaves out what was stored before.
func TestEventsSince(t *testing.T) {
	t.Parallel()
	b := bustest.Connect(t)
	id := event.WorkloadID("laptop", "1")
	record := workload.Record{Workload: workload.Workload{ID: id, Queue: "q", Kind: "RayJob", Name: "a", Namespace: "team"}, Phase: workload.Running}
	publishEvent(t, b, id, &event.WorkloadChanged{Record: record})
	record.Phase = workload.Succeeded
	publishEvent(t, b, id, &event.WorkloadChanged{Record: record})
	last, err := b.LastMessage(t.Context(), bus.EventsStream, event.EventsSubject("q", id))
	if err != nil {
		t.Fatal(err)
	}
	for since, want := range map[string]int{"1h": 2, "1d": 2, last.Stored.Format(time.RFC3339Nano): 1, "0s": 0} {
		t.Run(since, func(t *testing.T) {
			got := run(t, "", "events", "--since", since, "--nats-url", b.Conn().ConnectedUrl())
			if got.code != exit.OK || strings.Count(got.out, "\n") != want || want > 0 && !strings.Contains(got.out, "succeeded") {
				t.Errorf("since %s: %+v, want %d events, the last ones", since, got, want)
			}
		})
	}
}

// TestWhatIsRejectedWasNotSubmitted: a submission that Muster rejects is only told to be
// rejected, one that it takes to be submitted, and the reason of an end comes once.
func TestWhatIsRejectedWasNotSubmitted(t *testing.T) {
	t.Parallel()
	id := event.WorkloadID("laptop", "1")
	record := workload.Record{Workload: workload.Workload{ID: id, Queue: "q", Kind: "RayJob", Name: "a"}, Phase: workload.Cancelled,
		Reason: &workload.Reason{Kind: workload.ReasonCancelled, Message: "cancelled on request: typo"}}
	for name, test := range map[string]struct {
		event event.Payload
		want  result
	}{
		"rejected": {
			&event.WorkloadRejected{Workload: id, Queue: "q", Reason: workload.Reason{Kind: workload.ReasonInvalid, Message: "no head"}},
			result{exit.Rejected, "", "muster: rayjob/a was rejected: Invalid: no head\n"},
		},
		"cancelled": {
			&event.WorkloadChanged{Record: record},
			result{exit.Failure, "rayjob/a submitted (workload " + string(id) + ")\nrayjob/a cancelled on request: typo\n", "muster: rayjob/a is cancelled\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bustest.Connect(t)
			stream, ended := submit(t, b, "--wait=finished")
			awaitStored(t, stream)
			publishEvent(t, b, id, test.event)
			if got := <-ended; got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}
