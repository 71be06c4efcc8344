package bus_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/zap/zaptest"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/local/natsserver"
	"muster.dev/muster/pkg/message/event"
)

// published stores a message.
func published(ctx context.Context, b *bus.Bus, subject, id string) error {
	p, err := b.PublishEncoded(subject, id, []byte("x"), 0)
	if err != nil {
		return err
	}
	return p.Wait(ctx)
}

// storedIn starts a server whose files are in the directory, with the streams.
func storedIn(t *testing.T, dir string) (*natsserver.Server, *bus.Bus) {
	t.Helper()
	running, err := natsserver.Start(dir, -1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(running.Stop)
	b, err := bus.Connect(t.Context(), bus.Options{URL: running.URL(), Name: "test", Logger: zaptest.NewLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if err := b.EnsureStreams(t.Context()); err != nil {
		t.Fatal(err)
	}
	return running, b
}

// TestStreamsWithoutFiles: streams whose directories are removed under a running
// server are made again, and those who read before go on reading.
func TestStreamsWithoutFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, b := storedIn(t, dir)
	following, err := b.Follow(t.Context(), bus.StatusStream, event.StatusFilter())
	if err != nil {
		t.Fatal(err)
	}
	work, err := b.Work(t.Context(), bus.Work{Stream: bus.SubmitStream, Durable: bus.IntakeDurable})
	if err != nil {
		t.Fatal(err)
	}
	broken := []string{bus.StatusStream, bus.SubmitStream}
	directories, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", "*"))
	if err != nil {
		t.Fatal(err)
	}
	removed := 0
	for _, directory := range directories {
		if slices.Contains(broken, filepath.Base(directory)) {
			removed++
			if err := os.RemoveAll(directory); err != nil {
				t.Fatal(err)
			}
		}
	}
	if removed != len(broken) {
		t.Fatalf("of the streams %v %d have a directory among %v", broken, removed, directories)
	}
	remade, err := b.ConfigureStreams(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(remade)
	if slices.Sort(broken); !slices.Equal(remade, broken) {
		t.Errorf("made again: %v, want %v", remade, broken)
	}
	if remade, err = b.ConfigureStreams(t.Context()); err != nil || len(remade) > 0 {
		t.Errorf("once more: %v, %v", remade, err)
	}
	deadline := time.After(60 * time.Second)
	read := map[string]bool{}
	for i := 0; len(read) < 2; i++ {
		for _, subject := range []string{"muster.status.c.w", "muster.submit.q"} {
			if err := published(t.Context(), b, subject, fmt.Sprint(subject, i)); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case d := <-following.C:
			read[d.Subject] = true
		case d := <-work:
			d.Ack()
			read[d.Subject] = true
		case <-time.After(100 * time.Millisecond): // messages from before the reader began again
		case <-deadline:
			t.Fatalf("read only %v within a minute", read)
		}
	}
}

// TestAStreamThatIsNotWrittenAnyMore: a server that lost the file of a stream's last
// messages refuses all others, and answers every question about the stream as before.
// The stream is created again.
func TestAStreamThatIsNotWrittenAnyMore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, b := storedIn(t, dir)
	const subject = "muster.workload.q"
	if err := published(t.Context(), b, subject, "1"); err != nil {
		t.Fatal(err)
	}
	messages, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", bus.WorkloadStream, "msgs"))
	if err != nil || len(messages) != 1 {
		t.Fatalf("the directory of messages: %v, %v", messages, err)
	}
	if err := os.RemoveAll(messages[0]); err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(b.Conn())
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), bus.WorkloadStream)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.DeleteMsg(t.Context(), 1); err == nil {
		t.Fatal("the server does without the file")
	}
	if err := os.MkdirAll(messages[0], 0o755); err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := published(soon, b, subject, "2"); err == nil {
		t.Fatal("the stream takes messages")
	}
	remade, err := b.ConfigureStreams(t.Context())
	if err != nil || !slices.Equal(remade, []string{bus.WorkloadStream}) {
		t.Errorf("created again: %v, %v", remade, err)
	}
	if err := published(t.Context(), b, subject, "3"); err != nil {
		t.Errorf("after that: %v", err)
	}
}

// TestAStoreThatIsTooSmall: a service that starts beside a NATS whose store is
// smaller than the streams waits, and says what to set.
func TestAStoreThatIsTooSmall(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		servers int
		store   int64 // smaller than all streams together; of several servers smaller than one stream
	}{"one server": {1, 1 << 30}, "three servers": {3, 256 << 20}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := bus.Connect(t.Context(), bus.Options{URL: startServers(t, c.servers, c.store)[0].ClientURL(), Name: "test", Replicas: c.servers, Logger: zaptest.NewLogger(t)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(b.Close)
			ctx, cancel := context.WithCancel(t.Context())
			waited := make(chan error, 1)
			go func() { waited <- b.AwaitStreams(ctx) }()
			deadline := time.After(time.Minute)
			for b.Storage() == nil {
				select {
				case err := <-waited:
					t.Fatalf("it did not wait: %v", err)
				case <-deadline:
					t.Fatal("it does not say that the store is too small")
				case <-time.After(10 * time.Millisecond):
				}
			}
			cancel()
			var refused *jetstream.APIError
			if err := <-waited; !errors.As(err, &refused) || !strings.Contains(err.Error(), "max_file_store") || !strings.Contains(err.Error(), "5 GiB") {
				t.Errorf("error is %v, want one of the server and what to set", err)
			}
		})
	}
}

// TestADeadLetterThatIsNotStoredIsReported: a NATS that stores all else is reported, too, once
// a second try had no answer either.
func TestADeadLetterThatIsNotStoredIsReported(t *testing.T) {
	t.Parallel()
	_, b := storedIn(t, t.TempDir())
	over, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	letter := bus.Delivery{Subject: event.SubmitSubject("q"), Data: []byte("x"), Sequence: 1, Stored: time.Now()}
	try := func() {
		t.Helper()
		if err := b.StoreDeadLetter(over, letter, "no reader wants it"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("the error is %v", err)
		}
	}
	try()
	later := time.Now().Add(20 * time.Second)
	if err := b.StorageAt(later); err != nil {
		t.Errorf("after one try it reports %v", err)
	}
	poll, deadline := time.NewTicker(50*time.Millisecond), time.After(10*time.Second)
	defer poll.Stop()
	for b.StorageAt(later) == nil {
		select {
		case <-poll.C:
			try()
		case <-deadline:
			t.Fatal("it does not report that no dead letter was stored")
		}
	}
	if err := b.StorageAt(later); !strings.Contains(err.Error(), "muster.dead") {
		t.Errorf("it reports %v, want that no dead letter was stored", err)
	}
	if err := b.StoreDeadLetter(t.Context(), letter, "no reader wants it"); err != nil {
		t.Fatal(err)
	}
	if err := b.StorageAt(later); err != nil {
		t.Errorf("once it is stored: %v", err)
	}
}
