package access_test

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"muster.dev/muster/deploy/nats/access"
	"muster.dev/muster/deploy/nats/keys"
	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
)

// The server has all answers to direct gets in its memory before it sends the first. A
// tenant who asks for the last event of a large workload as fast as a connection goes
// gets few of them at a time, and another tenant's question is answered meanwhile.
func TestManyRequestsForALastEventAreAnsweredAFewAtATime(t *testing.T) {
	t.Parallel()
	url, dir := start(t, append(access.Users("here"), tenant(t, "a", "q"), tenant(t, "b", "theirs")))
	manager, err := connect(t, url, keys.File(dir, access.QueueManager))
	if err != nil {
		t.Fatal(err)
	}
	if err := manager.EnsureStreams(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := manager.GuardJetStream(t.Context()); err != nil {
		t.Fatal(err)
	}
	const id, large, many = "0d1b9e4c-1f0e-5b7e-9a52-0c2f3f1f2a3b", 256 << 10, 20_000
	for _, queue := range []string{"q", "theirs"} {
		if _, err := manager.Conn().Request(event.EventsSubject(queue, id), bytes.Repeat([]byte("x"), large), patience); err != nil {
			t.Fatal(err)
		}
	}
	watcher, err := nats.Connect(url, nats.UserInfo(witness, witness))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watcher.Close)
	var asked atomic.Int64 // of JetStream
	if _, err := watcher.Subscribe(bus.LastEventSubject("q", id), func(*nats.Msg) { asked.Add(1) }); err != nil {
		t.Fatal(err)
	}
	if err := watcher.FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
	thief, err := connect(t, url, keys.File(dir, "tenant-a"))
	if err != nil {
		t.Fatal(err)
	}
	honest, err := connect(t, url, keys.File(dir, "tenant-b"))
	if err != nil {
		t.Fatal(err)
	}
	var first sync.Once
	answered, inbox := make(chan struct{}), thief.Conn().NewInbox()
	if _, err := thief.Conn().Subscribe(inbox, func(*nats.Msg) { first.Do(func() { close(answered) }) }); err != nil {
		t.Fatal(err)
	}
	for range many {
		if err := thief.Conn().PublishRequest(bus.LastEventSubject("q", id), inbox, nil); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	last, err := honest.LastEvent(ctx, "theirs", id)
	if err != nil || last == nil || len(last.Data) != large {
		t.Errorf("another tenant's last event is %v, %v", last, err)
	}
	select {
	case <-answered: // if it reads them too slowly, the server may end its connection then
	case <-ctx.Done():
		t.Fatal("a tenant who asks too often has no answer at all")
	}
	if err := watcher.FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
	t.Logf("of %d requests at once JetStream was asked %d", many, asked.Load())
	if asked.Load() == 0 || asked.Load() > many/2 {
		t.Errorf("of %d requests at once JetStream was asked %d; want some, and most of them dropped", many, asked.Load())
	}
}
