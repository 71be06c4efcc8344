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
	js, err := jetstream.New(b.Conn())
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), bus.SubmitStream)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan result, 1)
	go func() {
		ended <- run(t, job, "submit", "-f", "-", "-q", "q", "--source", "laptop", "--id", "1", "--timeout", "60s", "--nats-url", b.Conn().ConnectedUrl())
	}()
	awaitStored(t, stream)
	if err := stream.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitStored(t, stream)
	id := event.WorkloadID("laptop", "1")
	e, err := event.New(event.NewID(), "test", time.Now(), &event.WorkloadChanged{Record: workload.Record{
		Workload: workload.Workload{ID: id, Queue: "q", Kind: "RayJob", Name: "a"}, Phase: workload.Queued}})
	if err == nil {
		err = b.Publish(t.Context(), event.EventsSubject("q", id), e)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := <-ended; got.code != exit.OK || !strings.Contains(got.out, "queued") {
		t.Errorf("%+v, want exit code 0 and that it is queued", got)
	}
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
