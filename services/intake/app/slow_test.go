package app

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/zap/zaptest"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/pkg/testkit/bustest"
	"muster.dev/muster/services/intake/internal/budget"
	"muster.dev/muster/services/intake/internal/submission"
)

const soon = 30 * time.Second

// TestSlowMessage: a message whose reading does not end delays no other queue; it is
// dead-lettered with a reason and not redelivered.
func TestSlowMessage(t *testing.T) {
	t.Parallel()
	b := bustest.Connect(t)
	spending := budget.New(budget.Limits{Each: 2 * time.Second, Memory: 256 << 20, Abandoned: 10})
	in := newIntake(ray.Shipped(), b, spending, service.NewRuntime(zaptest.NewLogger(t), "intake"))
	release := make(chan struct{})
	reads := make(chan string, 100)
	read := in.read
	in.read = func(m submission.Message) (submission.Result, error) {
		if bytes.Contains(m.Data, []byte("hostile")) {
			reads <- m.Subject
			<-release
		}
		return read(m)
	}
	run(t, in, release)

	const good = `{"apiVersion":"ray.io/v1","kind":"RayCluster","metadata":{"name":"good"},"spec":{"headGroupSpec":{"template":{"spec":{"containers":[{"name":"ray","image":"rayproject/ray:2.54.0"}]}}}}}`
	accepted, err := b.Work(t.Context(), bus.Work{Stream: bus.WorkloadStream, Durable: "test"})
	if err != nil {
		t.Fatal(err)
	}
	events := follow(t, b, bus.EventsStream, "muster.events.>")
	publish(t, b, event.SubmitSubject("a"), "bad", `{"metadata":{"name":"hostile"}}`)
	publish(t, b, event.SubmitSubject("a"), "after-bad", good)
	within(t, reads, "the hostile message to be read")
	publish(t, b, event.SubmitSubject("b"), "good", good)

	// The hostile one is still being read: queue b comes first.
	if d := within(t, accepted, "the good submission of queue b"); d.Subject != event.WorkloadSubject("b") {
		t.Errorf("first accepted on %s, want queue b", d.Subject)
	}
	if d := within(t, accepted, "the good submission behind the hostile one"); d.Subject != event.WorkloadSubject("a") {
		t.Errorf("then accepted on %s, want queue a", d.Subject)
	}
	d := within(t, events, "the rejection")
	_, payload, err := d.Event()
	rejected, is := payload.(*event.WorkloadRejected)
	if err != nil || !is || rejected.Queue != "a" || rejected.Submission != "bad" || rejected.Reason.Message == "" {
		t.Errorf("event %s, error %v; want the rejection of submission bad", d.Data, err)
	}
	awaitSubjects(t, b, bus.SubmitStream, 0)
	awaitSubjects(t, b, bus.DeadStream, 1)
	if len(reads) > 0 {
		t.Errorf("the hostile message was read %d more times", len(reads))
	}
}

// TestTooManySlowMessages: a process with too many stuck readers ends, so that a new one
// starts.
func TestTooManySlowMessages(t *testing.T) {
	t.Parallel()
	b := bustest.Connect(t)
	spending := budget.New(budget.Limits{Each: 50 * time.Millisecond, Memory: 256 << 20, Abandoned: 1})
	in := newIntake(ray.Shipped(), b, spending, service.NewRuntime(zaptest.NewLogger(t), "intake"))
	release := make(chan struct{})
	in.read = func(submission.Message) (submission.Result, error) { <-release; return submission.Result{}, nil }
	run(t, in, release)
	for _, queue := range []string{"a", "b"} {
		publish(t, b, event.SubmitSubject(queue), "bad", "{}")
	}
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	if err := spending.Watch(ctx); err != budget.ErrExhausted {
		t.Errorf("two readers are stuck: %v, want ErrExhausted", err)
	}
}

// run runs intake until the test ends, and releases stuck readers before that.
func run(t *testing.T, in *intake, release chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	began, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- in.run(ctx, func() { close(began) }) }()
	within(t, began, "intake to begin")
	t.Cleanup(func() {
		cancel()
		close(release)
		if err := <-ended; err != nil {
			t.Errorf("intake ended with %v", err)
		}
	})
}

func publish(t *testing.T, b *bus.Bus, subject, id, manifest string) {
	t.Helper()
	encoded, err := json.Marshal(event.Envelope{SpecVersion: "1.0", ID: id, Source: "test", Type: event.SubmitType, Data: json.RawMessage(manifest)})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Conn().PublishMsg(&nats.Msg{Subject: subject, Data: encoded}); err != nil {
		t.Fatal(err)
	}
}

func follow(t *testing.T, b *bus.Bus, stream, filter string) <-chan bus.Delivery {
	t.Helper()
	following, err := b.Replay(t.Context(), stream, filter)
	if err != nil {
		t.Fatal(err)
	}
	return following.C
}

func within[T any](t *testing.T, from <-chan T, what string) (got T) {
	t.Helper()
	select {
	case got = <-from:
	case <-time.After(soon):
		t.Fatalf("waited %s for %s", soon, what)
	}
	return got
}

// awaitSubjects waits until that number of the stream's subjects have messages.
func awaitSubjects(t *testing.T, b *bus.Bus, stream string, want int) {
	t.Helper()
	deadline := time.Now().Add(soon)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C { // NATS does not notify about new subjects
		subjects, err := b.Subjects(t.Context(), stream, ">")
		if err != nil {
			t.Fatal(err)
		}
		if len(subjects) == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("stream %s has messages on %v, want %d subjects", stream, subjects, want)
		}
	}
}
