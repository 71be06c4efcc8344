package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/intake/app"
)

func TestSubmissions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()

	w.stored(w.submit("m1", "1", fmt.Sprintf(manifest, "one")))
	got := w.nextAccepted().Workload
	if got.ID != event.WorkloadID("test", "1") || got.Name != "one" || got.Queue != queue || got.Pods() != 1 {
		t.Errorf("workload %+v", got)
	}

	binary := nats.NewMsg(event.SubmitSubject(queue))
	binary.Data = fmt.Appendf(nil, manifest, "two")
	for key, value := range map[string]string{"id": "2", "source": "test", "type": event.SubmitType, "specversion": "1.0", "priority": "4"} {
		binary.Header.Set("ce-"+key, value)
	}
	if err := w.bus.Conn().PublishMsg(binary); err != nil {
		t.Fatal(err)
	}
	if got := w.nextAccepted().Workload; got.ID != event.WorkloadID("test", "2") || got.Name != "two" || got.Priority != 4 {
		t.Errorf("workload in binary mode %+v", got)
	}

	w.stored(w.submit("m3", "3", "kind: Pod"))
	rejected := w.nextRejected()
	if rejected.Workload != event.WorkloadID("test", "3") || rejected.Queue != queue || rejected.Reason.Kind != workload.ReasonInvalid {
		t.Errorf("rejection %+v", rejected)
	}
	w.nothingMore()
}

// TestRepetition: intake passes on each publication of a submission, so that each gets
// an answer; all have the same workload id.
func TestRepetition(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	const times = 5
	for i := range times {
		w.stored(w.submit(fmt.Sprintf("m%d", i), "1", fmt.Sprintf(manifest, "one")))
	}
	first := w.nextAccepted().Workload
	for range times - 1 {
		if again := w.nextAccepted().Workload; again.ID != first.ID || again.Digest != first.Digest {
			t.Errorf("repetition: workload %+v after %+v", again, first)
		}
	}
	w.stored(w.submit("other", "1", fmt.Sprintf(manifest, "other")))
	second := w.nextAccepted().Workload
	if second.Name != "other" || second.ID != first.ID || second.Digest == first.Digest {
		t.Errorf("other content: workload %+v after %+v; want the same id and another digest", second, first)
	}
	w.nothingMore()
}

// TestIdentities: the same source and id from two users, and from an unnamed one, are
// three workloads, and none can have the id of a workload from HTTP.
func TestIdentities(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	ids := map[workload.ID]string{}
	for _, user := range []string{"", "tenant-a", "tenant-b"} {
		subject := event.SubmitSubject(queue)
		if user != "" {
			subject = event.SubmitSubjectAs(queue, user)
		}
		w.publishAs(subject, "laptop", "nightly")
		got := w.nextAccepted()
		if other, taken := ids[got.Workload.ID]; taken {
			t.Errorf("%q has the id of %q", user, other)
		}
		ids[got.Workload.ID] = user
		if got.Workload.ID != event.SubmissionID(user, "laptop", "nightly") {
			t.Errorf("workload %s of %q", got.Workload.ID, user)
		}
		if former := event.WorkloadID("laptop", "nightly"); user != "" && got.Former != former || user == "" && got.Former != "" {
			t.Errorf("former id %q of %q", got.Former, user)
		}
	}
	for _, source := range []string{"http/alice", "kubernetes/east"} {
		w.publishAs(event.SubmitSubject(queue), source, "key")
		if got := w.nextRejected(); !strings.Contains(got.Reason.Message, "over NATS no source begins with") {
			t.Errorf("source %s: %s", source, got.Reason.Message)
		}
	}
}

func (w *world) publishAs(subject, source, id string) {
	w.t.Helper()
	message := nats.NewMsg(subject)
	message.Data = fmt.Appendf(nil, manifest, "one")
	for key, value := range map[string]string{"id": id, "source": source, "type": event.SubmitType, "specversion": "1.0"} {
		message.Header.Set("ce-"+key, value)
	}
	if err := w.bus.Conn().PublishMsg(message); err != nil {
		w.t.Fatal(err)
	}
}

// TestBadAmongGood: ten thousand bad messages delay no good one, and each gets an
// answer.
func TestBadAmongGood(t *testing.T) {
	t.Parallel()
	const bad, everyGood = 10_000, 1000
	w := newWorld(t)
	w.start()
	kinds := []string{"", "kind: [", `{"specversion": "1.0"}`, "\xff\x00", `{"specversion":"1.0","id":"1","source":"s","type":"t","data":{}}`}
	for i := range bad {
		if i%everyGood == 0 {
			w.submit(fmt.Sprintf("good-%d", i), fmt.Sprint(i), fmt.Sprintf(manifest, fmt.Sprintf("good-%d", i)))
		}
		last := w.send(fmt.Sprintf("bad-%d", i), []byte(kinds[i%len(kinds)]))
		if i%everyGood == everyGood-1 {
			w.stored(last) // the client bounds the unacknowledged publications
		}
	}
	for i := 0; i < bad; i += everyGood {
		if got, want := w.nextAccepted().Workload.Name, fmt.Sprintf("good-%d", i); got != want {
			t.Fatalf("workload %s, want %s", got, want)
		}
	}
	for range bad {
		if rejected := w.nextRejected(); rejected.Queue != queue || rejected.Reason.Message == "" {
			t.Fatalf("rejection %+v", rejected)
		}
	}
	w.nothingMore()
}

// TestRestart: an intake reads in order what was submitted while none ran.
func TestRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := w.start()
	w.stored(w.submit("m0", "0", fmt.Sprintf(manifest, "n0")))
	w.nextAccepted()
	if err := stop(); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped with %v", err)
	}
	for i := 1; i <= 3; i++ {
		w.stored(w.submit(fmt.Sprintf("m%d", i), fmt.Sprint(i), fmt.Sprintf(manifest, fmt.Sprintf("n%d", i))))
	}
	w.start()
	for i := 1; i <= 3; i++ {
		if got := w.nextAccepted().Workload.Name; got != fmt.Sprintf("n%d", i) {
			t.Errorf("workload %s, want n%d", got, i)
		}
	}
}

// TestStopWithoutNATS: intake stops although the server is gone.
func TestStopWithoutNATS(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := w.start()
	w.stored(w.send("m", []byte("bad")))
	w.nextRejected()
	w.server.Stop()
	began := time.Now()
	if err := stop(); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped with %v", err)
	}
	if took := time.Since(began); took > patience {
		t.Errorf("stopping took %s", took)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	if err := (&app.Config{}).Validate(); err == nil || err.Error() != "nats-url: is missing" {
		t.Errorf("without a URL: %v", err)
	}
}

// TestOneQueuesFloodDoesNotDelayAnothers: of ten thousand submissions of one queue and
// then ten of another, the number passed on before the ten does not grow with the flood.
func TestOneQueuesFloodDoesNotDelayAnothers(t *testing.T) {
	t.Parallel()
	// Submissions on their way to the server, in the channel, and delivered before the
	// new queue is noticed.
	const flood, few, ahead = 10_000, 10, 1024 + 256 + 128 + 600
	w := newWorld(t)
	submit := func(queue string, submissions int) {
		published := make([]bus.Published, submissions)
		for i := range submissions {
			name := fmt.Sprintf("%s-%d", queue, i)
			data, err := json.Marshal(fmt.Sprintf(manifest, name))
			if err != nil {
				t.Fatal(err)
			}
			published[i], err = w.bus.PublishAsync(event.SubmitSubject(queue), event.Envelope{
				SpecVersion: "1.0", ID: name, Source: "test", Type: event.SubmitType, DataContentType: "application/yaml", Data: data,
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, p := range published {
			if err := p.Wait(w.ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	submit("flood", flood)
	stop := w.start()
	defer func() { _ = stop() }()
	(<-w.accepted).Ack()
	before, err := w.bus.State(w.ctx, bus.WorkloadStream)
	if err != nil {
		t.Fatal(err)
	}
	submit("other", few)
	between, others := 0, 0
	for others < few {
		select {
		case d := <-w.accepted:
			d.Ack()
			if d.Subject == event.WorkloadSubject("other") {
				others++
				between = int(d.Sequence - before.Last)
			}
		case <-time.After(patience):
			t.Fatalf("%d of %d passed on", others, few)
		}
	}
	t.Logf("%d submissions passed on until the last of the others", between)
	if between > ahead+3*few {
		t.Errorf("%d submissions passed on until the last of the others, want at most %d", between, ahead+3*few)
	}
}

// TestMessageIDsOfTwoTenants: NATS accepts a submission although another tenant has just
// used its message id.
func TestMessageIDsOfTwoTenants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	js, err := jetstream.New(w.bus.Conn())
	if err != nil {
		t.Fatal(err)
	}
	users := []string{"tenant-a", "tenant-b"}
	for _, user := range users {
		message := nats.NewMsg(event.SubmitSubjectAs(queue, user))
		message.Data = fmt.Appendf(nil, manifest, user)
		for key, value := range map[string]string{"ce-id": "1", "ce-source": "laptop", "ce-type": event.SubmitType, "ce-specversion": "1.0"} {
			message.Header.Set(key, value)
		}
		ack, err := js.PublishMsg(w.ctx, message, jetstream.WithMsgID("nightly"))
		if err != nil || ack.Duplicate {
			t.Fatalf("the message of %s: %+v, %v; want it stored", user, ack, err)
		}
	}
	taken := map[string]bool{}
	for range users {
		taken[w.nextAccepted().Workload.Name] = true
	}
	for _, user := range users {
		if !taken[user] {
			t.Errorf("accepted are %v, not that of %s", taken, user)
		}
	}
}
