package bus_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/testkit/bustest"
)

// TestOneSubjectDoesNotFillAStream: large messages that come faster than they are read
// are dropped before there is no room for others, and none of the others'.
func TestOneSubjectDoesNotFillAStream(t *testing.T) {
	t.Parallel()
	const honest, floods, size = 1000, 700, 1 << 20
	b := bustest.Connect(t)
	publish(t, b, event.SubmitSubject("honest"), honest)
	dropped := make(chan string, 1)
	ctx, stop := context.WithCancel(t.Context())
	read, err := b.Handle(ctx, bus.Work{
		Stream: bus.SubmitStream, Durable: "test", AckWait: time.Minute,
		Dropped: func(subject string, messages uint64) {
			if messages > 0 {
				select {
				case dropped <- subject:
				default: // one is enough
				}
			}
		},
	}, func(ctx context.Context, d bus.Delivery) {
		if d.Subject == event.SubmitSubject("read") {
			d.Ack()
			return
		}
		<-ctx.Done()
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); read() }()
	defer func() { stop(); <-ended }()

	large := bytes.Repeat([]byte("x"), size)
	refused := 0
	// At least until something is dropped: a flood is one while others are read, on a
	// slow machine, too.
	patience := time.Now().Add(5 * time.Minute)
	for sent, subject := 0, ""; sent < floods || subject == ""; sent++ {
		answer, err := b.Conn().RequestMsg(&nats.Msg{Subject: event.SubmitSubject("flood"), Data: large}, 20*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(answer.Data, []byte("error")) {
			refused++
		}
		if err := b.Conn().Publish(event.SubmitSubject("read"), []byte("x")); err != nil {
			t.Fatal(err)
		}
		select {
		case subject = <-dropped:
			if subject != event.SubmitSubject("flood") {
				t.Errorf("dropped of %s", subject)
			}
		default:
			if time.Now().After(patience) {
				t.Fatalf("nothing was dropped, and %d messages were refused", refused)
			}
		}
	}
	e := event.Envelope{SpecVersion: "1.0", ID: "one more", Source: "test", Type: "test"}
	if err := b.Publish(ctx, event.SubmitSubject("other"), e); err != nil {
		t.Errorf("a third subject, after %d refusals of the flood: %v", refused, err)
	}
	js, err := jetstream.New(b.Conn())
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(ctx, bus.SubmitStream)
	if err != nil {
		t.Fatal(err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(event.SubmitSubject("honest")))
	if err != nil || info.State.Subjects[event.SubmitSubject("honest")] != honest {
		t.Errorf("of the others' %d messages are left: %+v, %v", honest, info.State.Subjects, err)
	}
}

// TestABacklogIsNotDropped: what one queue was sent while no reader was there is read,
// all of it, although it is most of the stream.
func TestABacklogIsNotDropped(t *testing.T) {
	t.Parallel()
	const backlog, size = 430, 1 << 20
	b := bustest.Connect(t)
	large := bytes.Repeat([]byte("x"), size)
	for range backlog {
		if _, err := b.Conn().Request(event.SubmitSubject("q"), large, 20*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	read := make(chan uint64, backlog)
	handle, err := b.Handle(ctx, bus.Work{
		Stream: bus.SubmitStream, Durable: "test", AckWait: time.Minute,
		Dropped: func(subject string, messages uint64) { t.Errorf("%d messages of %s were dropped", messages, subject) },
	}, func(_ context.Context, d bus.Delivery) {
		d.Ack()
		read <- d.Sequence
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); handle() }()
	defer func() { stop(); <-ended }()
	for i := range backlog {
		select {
		case <-read:
		case <-time.After(20 * time.Second):
			t.Fatalf("only %d of %d messages were read", i, backlog)
		}
	}
}

// TestOneSubjectsDeadPushNobodysOut: messages of one tenant that are given up take the
// place of its own.
func TestOneSubjectsDeadPushNobodysOut(t *testing.T) {
	t.Parallel()
	b := bustest.Connect(t)
	publish(t, b, event.DeadSubject(event.SubmitSubject("honest")), 1)
	large := bytes.Repeat([]byte("x"), event.MaxSubmission)
	for range 140 { // more than the stream has room for
		if _, err := b.Conn().Request(event.DeadSubject(event.SubmitSubject("hostile")), large, 20*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := b.Subjects(t.Context(), bus.DeadStream, event.DeadFilter)
	if err != nil || !kept[event.DeadSubject(event.SubmitSubject("honest"))] || !kept[event.DeadSubject(event.SubmitSubject("hostile"))] {
		t.Errorf("kept are %v, %v; want some of both", kept, err)
	}
}
