package bus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/local/natsserver"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/testkit/bustest"
	"muster.dev/muster/pkg/testkit/smalldisk"
)

// publish sends a number of messages on a subject.
func publish(t *testing.T, b *bus.Bus, subject string, messages int) {
	t.Helper()
	published := make([]bus.Published, messages)
	for i := range messages {
		var err error
		if published[i], err = b.PublishAsync(subject, event.Envelope{SpecVersion: "1.0", ID: fmt.Sprintf("%s/%d/%s", subject, i, event.NewID()), Source: "test", Type: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range published {
		if err := p.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSubjectsTakeTurns: ten thousand messages of one queue wait; those of others,
// known or new, are read after a number of messages that does not grow with them.
func TestSubjectsTakeTurns(t *testing.T) {
	t.Parallel()
	// The channel, what is handed out until a new subject is looked for, and as much
	// again while that is done; then every third message.
	const few, ahead = 10, 256 + 128 + 600
	b := bustest.Connect(t)
	publish(t, b, event.SubmitSubject("flood"), 10_000)
	work, err := b.Work(t.Context(), bus.Work{Stream: bus.SubmitStream, Durable: "test"})
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	next := func() string {
		t.Helper()
		select {
		case d := <-work:
			d.Ack()
			read++
			return d.Subject[strings.LastIndexByte(d.Subject, '.')+1:]
		case <-time.After(20 * time.Second):
			t.Fatalf("nothing more after %d messages", read)
			return ""
		}
	}
	for range 500 {
		next()
	}
	for _, queue := range []string{"one", "two"} {
		publish(t, b, event.SubmitSubject(queue), few)
	}
	began, got := read, map[string]int{}
	for got["one"] < few || got["two"] < few {
		got[next()]++
		if between := read - began; between > ahead+3*2*few {
			t.Fatalf("after %d messages, these: %v", between, got)
		}
	}
	t.Logf("%d messages until the %d of each of two others had been read", read-began, few)
	if got["flood"] == 0 {
		t.Error("the flood has stopped")
	}
	for read < 10_000+2*few {
		next()
	}
}

// TestMoreSubjectsThanAreReadAtOnce: they take turns, and all are read.
func TestMoreSubjectsThanAreReadAtOnce(t *testing.T) {
	t.Parallel()
	b := bustest.Connect(t)
	const queues = 150
	for i := range queues {
		publish(t, b, event.SubmitSubject(fmt.Sprintf("queue-%d", i)), 2)
	}
	work, err := b.Work(t.Context(), bus.Work{Stream: bus.SubmitStream, Durable: "test"})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[uint64]bool{}
	for len(seen) < 2*queues { // some may come twice, when the machine is slow
		select {
		case d := <-work:
			d.Ack()
			seen[d.Sequence] = true
		case <-time.After(30 * time.Second):
			t.Fatalf("%d of %d messages read", len(seen), 2*queues)
		}
	}
}

// TestADeadLetterThatIsTooLargeIsAnErrorOfItsOwn: the server never keeps it.
func TestADeadLetterThatIsTooLargeIsAnErrorOfItsOwn(t *testing.T) {
	t.Parallel()
	b := bustest.Connect(t)
	large := bus.Delivery{Subject: event.SubmitSubject("q"), Data: make([]byte, b.Conn().MaxPayload()+1)}
	if err := b.StoreDeadLetter(t.Context(), large, "no reader wants it"); !errors.Is(err, bus.ErrNotKept) {
		t.Errorf("keeping it returns %v, want ErrNotKept", err)
	}
	b.Close()
	if err := b.StoreDeadLetter(t.Context(), bus.Delivery{Subject: event.SubmitSubject("q")}, "no reader wants it"); err == nil || errors.Is(err, bus.ErrNotKept) {
		t.Errorf("without a connection it returns %v, want another error", err)
	}
}

// TestDeadLettersAreKept: with their subject, their content and the reason.
func TestDeadLettersAreKept(t *testing.T) {
	t.Parallel()
	b := bustest.Connect(t)
	publish(t, b, event.SubmitSubject("q"), 1)
	work, err := b.Work(t.Context(), bus.Work{Stream: bus.SubmitStream, Durable: "test"})
	if err != nil {
		t.Fatal(err)
	}
	b.PublishDeadLetter(t.Context(), <-work, "no reader\nwants it")
	dead, err := b.DeadLetters(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(dead) != 1 || dead[0].Subject != event.SubmitSubject("q") || dead[0].Reason != "no reader wants it" ||
		!strings.Contains(dead[0].Message, "muster.submit.q/0") || dead[0].Stored.IsZero() {
		t.Errorf("kept is %+v", dead)
	}
	left, err := b.Subjects(t.Context(), bus.SubmitStream, ">")
	if err != nil || len(left) != 0 {
		t.Errorf("the stream still has %v, %v", left, err)
	}
}

// TestTheLastDeadLetters: the newest of them, the oldest first, and how many are older.
func TestTheLastDeadLetters(t *testing.T) {
	t.Parallel()
	b := bustest.Connect(t)
	const all = 11
	for i := range all {
		d := bus.Delivery{Subject: event.SubmitSubject("q"), Data: []byte{byte('a' + i)}, Sequence: uint64(i + 1)}
		if err := b.StoreDeadLetter(t.Context(), d, "no reader wants it"); err != nil {
			t.Fatal(err)
		}
	}
	for _, most := range []int{1, 4, 5, 10, all, all + 1} {
		last, older, err := b.LastDeadLetters(t.Context(), most, func(d *bus.DeadLetter) { d.Message += "!" })
		got := ""
		for _, d := range last {
			got += d.Message
		}
		want := strings.Join(strings.Split("abcdefghijk", "")[max(0, all-most):], "!") + "!"
		if err != nil || got != want || older != max(0, all-most) {
			t.Errorf("of the last %d there are %q and %d older ones, %v; want %q", most, got, older, err, want)
		}
	}
}

// TestAFullQueueRefuses: nothing is dropped, and other queues are not full.
func TestAFullQueueRefuses(t *testing.T) {
	t.Parallel()
	const most = 20_000
	b := bustest.Connect(t)
	publish(t, b, event.SubmitSubject("flood"), most)
	e := event.Envelope{SpecVersion: "1.0", ID: "one more", Source: "test", Type: "test"}
	if err := b.Publish(t.Context(), event.SubmitSubject("flood"), e); !errors.Is(err, bus.ErrFull) {
		t.Errorf("one more of the flood: %v, want ErrFull", err)
	}
	if err := b.Publish(t.Context(), event.SubmitSubject("other"), e); err != nil {
		t.Errorf("one of another queue: %v", err)
	}
	work, err := b.Work(t.Context(), bus.Work{Stream: bus.SubmitStream, Durable: "test"})
	if err != nil {
		t.Fatal(err)
	}
	for range most + 1 {
		select {
		case d := <-work:
			d.Ack()
		case <-time.After(20 * time.Second):
			t.Fatal("messages are missing")
		}
	}
	if err := b.Publish(t.Context(), event.SubmitSubject("flood"), e); err != nil {
		t.Errorf("after all have been read: %v", err)
	}
}

// TestAFullDiskRefuses: what the server has confirmed is there when the disk has
// room again, and what it has not confirmed was refused with an error. Meanwhile
// Storage returns what to do, whether NATS answers that it has no room or does not answer.
func TestAFullDiskRefuses(t *testing.T) {
	t.Parallel()
	dir := smalldisk.Mount(t, 24)
	server, err := natsserver.Start(dir, -1)
	if err != nil {
		t.Fatal(err)
	}
	b, err := bus.Connect(t.Context(), bus.Options{URL: server.URL(), Name: t.Name(), Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if err := b.EnsureStreams(t.Context()); err != nil {
		t.Fatal(err)
	}
	large, err := json.Marshal(strings.Repeat("x", 512<<10))
	if err != nil {
		t.Fatal(err)
	}
	stored := map[string]bool{}
	var refusal error
	for i := 0; refusal == nil && i < 100; i++ {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		id := fmt.Sprint(i)
		if refusal = b.Publish(ctx, event.SubmitSubject("q"), event.Envelope{SpecVersion: "1.0", ID: id, Source: "test", Type: "test", Data: large}); refusal == nil {
			stored[id] = true
		}
		cancel()
	}
	if refusal == nil || len(stored) == 0 {
		t.Fatalf("%d messages of half a megabyte are stored on 24 MB, the next: %v", len(stored), refusal)
	}
	t.Logf("%d messages stored, then: %v", len(stored), refusal)
	storageIs(t, b, "after the first refusal", func(err error) bool {
		return err != nil && strings.Contains(err.Error(), "make room and restart it")
	})
	address, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(address.Port())
	if err != nil {
		t.Fatal(err)
	}
	server.Stop()
	smalldisk.Grow(t, dir, 256)
	if server, err = natsserver.Start(dir, port); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	storageIs(t, b, "after the restart with room", func(err error) bool { return err == nil && b.Ready() == nil })
	work, err := b.Work(t.Context(), bus.Work{Stream: bus.SubmitStream, Durable: "test"})
	if err != nil {
		t.Fatal(err)
	}
	for len(stored) > 0 {
		select {
		case d := <-work:
			e, err := event.Parse(d.Data)
			if err != nil {
				t.Fatal(err)
			}
			delete(stored, e.ID)
			d.Ack()
		case <-time.After(20 * time.Second):
			t.Fatalf("confirmed, and lost: %v", stored)
		}
	}
}

// storageIs submits until the storage of the bus is as wanted.
func storageIs(t *testing.T, b *bus.Bus, when string, wanted func(error) bool) {
	t.Helper()
	deadline := time.Now().Add(40 * time.Second)
	for i := 0; ; i++ {
		e := event.Envelope{SpecVersion: "1.0", ID: fmt.Sprint(when, i), Source: "test", Type: "test", Data: json.RawMessage(`"x"`)}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		err := b.Publish(ctx, event.SubmitSubject("q"), e)
		cancel()
		if wanted(b.Storage()) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: after 40 s the storage is %v; the last publication: %v", when, b.Storage(), err)
		}
	}
}

// TestWhoIsTakenOverDoesNoHarm: readers that do not know yet that another has taken
// over stay connected; every message is read all the same, by one or the other.
func TestWhoIsTakenOverDoesNoHarm(t *testing.T) {
	t.Parallel()
	const takeOvers, queues = 20, 4
	b := bustest.Connect(t)
	read := make(chan uint64)
	for range takeOvers {
		for i := range queues {
			publish(t, b, event.SubmitSubject(fmt.Sprintf("queue-%d", i)), 1)
		}
		work, err := b.Work(t.Context(), bus.Work{Stream: bus.SubmitStream, Durable: "test", TakeOver: true})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for d := range work {
				d.Ack()
				read <- d.Sequence
			}
		}()
	}
	seen := map[uint64]bool{}
	for len(seen) < takeOvers*queues {
		select {
		case sequence := <-read:
			seen[sequence] = true
		case <-time.After(30 * time.Second):
			t.Fatalf("%d of %d messages read", len(seen), takeOvers*queues)
		}
	}
}
