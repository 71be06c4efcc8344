package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/pkg/testkit/bustest"
	"muster.dev/muster/services/intake/internal/budget"
	"muster.dev/muster/services/intake/internal/submission"
)

const (
	floods    = 3   // connections
	unreplied = 256 // messages of each that NATS has not answered yet, at most
	honests   = 8   // submissions of the other queue while the flood lasts
	// refusals of each of these, four a second: without room that intake makes there are
	// more than ten of each.
	refusals = 4
	// floodPatience is how long the test waits for anything: the machine is flooded, too.
	floodPatience = 2 * time.Minute
)

// TestAFloodedQueueKeepsOthersIn: a tenant fills the stream with large messages that
// take long to read, as fast as NATS takes them. Intake accepts every submission of
// another queue during the flood. The time depends on the machine, so the test only
// prints it. It is not parallel, because the flood would slow other tests.
func TestAFloodedQueueKeepsOthersIn(t *testing.T) {
	b := bustest.Connect(t)
	in := newIntake(ray.Shipped(), b, budget.New(budget.Default()), service.NewRuntime(zap.NewNop(), "intake"))
	release := make(chan struct{})
	read := in.read
	in.read = func(m submission.Message) (submission.Result, error) {
		if m.Subject == event.SubmitSubject("flood") {
			select {
			case <-release:
			case <-time.After(time.Second): // as long as the dearest takes
			}
		}
		return read(m)
	}
	run(t, in, release)
	seen := acceptedIn(t, b, "honest")
	ctx, stop := context.WithCancel(t.Context())
	var flooded atomic.Int64
	var flooding sync.WaitGroup
	for range floods {
		flooding.Go(func() { flooded.Add(flood(ctx, t, b.Conn().ConnectedUrl())) })
	}
	defer flooding.Wait()
	defer stop()

	awaitFull(t, b, in)
	refused, worst := 0, time.Duration(0)
	for i := range honests {
		name := fmt.Sprintf("honest-%d", i)
		began := time.Now()
		refused += submitPatiently(t, b, "honest", name)
		awaitAccepted(t, seen, name)
		worst = max(worst, time.Since(began))
	}
	stop()
	flooding.Wait()
	t.Logf("%d MiB were sent to the flooded queue; %d refusals of the other one, %s at most until it was accepted", flooded.Load()>>20, refused, worst)
	if refused > refusals*honests {
		t.Errorf("NATS refused the other queue %d times, want at most %d for each of %d submissions", refused, refusals, honests)
	}
}

// acceptedIn returns the names of the accepted workloads of one queue.
func acceptedIn(t *testing.T, b *bus.Bus, queue string) <-chan string {
	t.Helper()
	work, err := b.Work(t.Context(), bus.Work{Stream: bus.WorkloadStream, Durable: "test"})
	if err != nil {
		t.Fatal(err)
	}
	names := make(chan string, 100)
	go func() {
		for d := range work {
			d.Ack()
			if d.Subject != event.WorkloadSubject(queue) {
				continue
			}
			if _, payload, err := d.Event(); err == nil {
				names <- payload.(*event.WorkloadSubmitted).Workload.Name
			}
		}
	}()
	return names
}

// awaitAccepted waits until a workload is accepted. A submission that was repeated may
// be accepted twice, so names that were accepted before come again.
func awaitAccepted(t *testing.T, seen <-chan string, name string) {
	t.Helper()
	patience := time.After(floodPatience)
	for {
		select {
		case got := <-seen:
			if got == name {
				return
			}
		case <-patience:
			t.Fatalf("%s is not accepted after %s", name, floodPatience)
		}
	}
}

// awaitFull waits until NATS refuses the flooded queue, or intake has dropped some of it.
func awaitFull(t *testing.T, b *bus.Bus, in *intake) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), floodPatience)
	defer cancel()
	for i := 0; testutil.ToFloat64(in.results.WithLabelValues("dropped")) == 0; i++ {
		err := b.Publish(ctx, event.SubmitSubject("flood"), submissionNamed(fmt.Sprintf("probe-%d", i)))
		if errors.Is(err, bus.ErrFull) {
			return
		}
		if err != nil && ctx.Err() != nil { // a flooded server may leave some unanswered
			t.Fatalf("publish probe %d to the flooded queue: %v", i, err)
		}
	}
}

// submitPatiently publishes up to four times a second until NATS reports that it has
// stored the submission, and counts the refusals for want of room. SECURITY.md promises
// no more: NATS bounds no rate, so beside a flood a publication may go unanswered.
func submitPatiently(t *testing.T, b *bus.Bus, queue, name string) (refused int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), floodPatience)
	defer cancel()
	again := time.NewTicker(250 * time.Millisecond)
	defer again.Stop()
	for {
		err := b.Publish(ctx, event.SubmitSubject(queue), submissionNamed(name))
		if err == nil {
			return refused
		}
		if ctx.Err() != nil {
			t.Fatalf("submit %s, refused %d times within %s: %v", name, refused, floodPatience, err)
		}
		if errors.Is(err, bus.ErrFull) {
			refused++
		}
		<-again.C
	}
}

// submissionNamed returns a small, valid submission.
func submissionNamed(name string) event.Envelope {
	data := json.RawMessage(fmt.Sprintf(`{"apiVersion":"ray.io/v1","kind":"RayCluster","metadata":{"name":%q},"spec":{"headGroupSpec":{"template":{"spec":{"containers":[{"name":"ray","image":"rayproject/ray:2.54.0"}]}}}}}`, name))
	return event.Envelope{SpecVersion: "1.0", ID: name, Source: "test", Type: event.SubmitType, Data: data}
}

// flood publishes until ctx ends, and returns the number of bytes sent. What NATS
// refuses is not sent again. Smaller messages follow each large one, to fill the space
// in which the next large one does not fit.
func flood(ctx context.Context, t *testing.T, url string) (sent int64) {
	nc, err := nats.Connect(url)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer nc.Close()
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(unreplied))
	if err != nil {
		t.Error(err)
		return 0
	}
	var messages [][]byte
	for size := 470 << 10; size > 200; size /= 2 {
		messages = append(messages, bytes.Repeat([]byte("x"), size))
	}
	for i := 0; ctx.Err() == nil; i++ {
		data := messages[i%len(messages)]
		_, err := js.PublishAsync(event.SubmitSubject("flood"), data)
		switch {
		case errors.Is(err, jetstream.ErrTooManyStalledMsgs): // NATS has yet to answer the others
		case err != nil:
			t.Error(err)
			return sent
		default:
			sent += int64(len(data))
		}
	}
	return sent
}
