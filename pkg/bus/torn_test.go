package bus_test

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/local/natsserver"
)

// TestAReaderGoesOnWithATornConsumer: the file of a consumer that lost a half, as after
// a loss of power, does not end the reading of its subject.
func TestAReaderGoesOnWithATornConsumer(t *testing.T) {
	t.Parallel()
	for name, work := range map[string]bus.Work{
		"shared":      {Stream: bus.SubmitStream, Durable: bus.IntakeDurable, AckWait: time.Minute},
		"of a leader": {Stream: bus.SubmitStream, Durable: bus.IntakeDurable, AckWait: time.Minute, TakeOver: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			readsOn(t, work)
		})
	}
}

func readsOn(t *testing.T, reader bus.Work) {
	t.Helper()
	dir := t.TempDir()
	running, b := storedIn(t, dir)
	at, err := url.Parse(running.URL())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(at.Port())
	if err != nil {
		t.Fatal(err)
	}
	work, err := b.Work(t.Context(), reader)
	if err != nil {
		t.Fatal(err)
	}
	next := func() bus.Delivery {
		t.Helper()
		select {
		case d := <-work:
			return d
		case <-time.After(time.Minute):
			t.Fatal("no message is read")
			return bus.Delivery{}
		}
	}
	for _, id := range []string{"1", "2", "3"} {
		if err := published(t.Context(), b, "muster.submit.q", id); err != nil {
			t.Fatal(err)
		}
	}
	next().Ack()
	left := []uint64{next().Sequence, next().Sequence} // not settled: the file of the consumer has them
	running.Stop()
	files, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", bus.SubmitStream, "obs", "*", "o.dat"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files of consumers: %v, %v", files, err)
	}
	content, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], content[:len(content)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if running, err = natsserver.Start(dir, port); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(running.Stop)
	var read []uint64
	for range left {
		d := next()
		read = append(read, d.Sequence)
		d.Ack()
	}
	if !slices.Equal(read, left) {
		t.Errorf("read after the restart: messages %v, want those that were not settled: %v", read, left)
	}
}
