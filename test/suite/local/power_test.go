package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/test/suite/disk"
)

func TestMain(m *testing.M) {
	disk.Serve()
	os.Exit(m.Run())
}

// poweredNATS is a NATS server on a disk that can fail, and a client.
type poweredNATS struct {
	*process
	disk *disk.Disk
	bus  *bus.Bus
}

// newPoweredNATS starts a server that forces its files to the disk as sync says.
func newPoweredNATS(t *testing.T, sync string) *poweredNATS {
	t.Helper()
	if missing := Missing(binaries); len(missing) > 0 && os.Getenv("MUSTER_REQUIRE_SERVICES") == "" {
		t.Skipf("%v are not built: run `make build bin/nats-server`", missing)
	}
	d, err := disk.Start()
	if errors.Is(err, disk.ErrNotHere) {
		t.Skip(err)
	}
	must(t, err)
	t.Cleanup(d.Stop)
	dir := t.TempDir()
	ports, err := freePorts(2)
	must(t, err)
	config := fmt.Sprintf("host: 127.0.0.1\nport: %d\njetstream { store_dir: %q, max_file_store: 8GB, sync_interval: %s }\n", ports[0], d.Path, sync)
	file := filepath.Join(dir, "nats.conf")
	must(t, os.WriteFile(file, []byte(config), 0o600))
	n := &poweredNATS{disk: d, process: &process{
		binary: filepath.Join(binaries, "nats-server"), log: filepath.Join(dir, "log"),
		arguments: []string{"--config", file, "--http_port", fmt.Sprint(ports[1])},
		ready:     fmt.Sprintf("http://127.0.0.1:%d/healthz?js-enabled-only=true", ports[1]),
	}}
	must(t, n.start())
	t.Cleanup(func() { n.kill() })
	must(t, n.awaitReady(t.Context()))
	n.bus, err = bus.Connect(t.Context(), bus.Options{URL: fmt.Sprintf("nats://127.0.0.1:%d", ports[0]), Name: t.Name(), Logger: zaptest.NewLogger(t)})
	must(t, err)
	t.Cleanup(n.bus.Close)
	must(t, n.bus.AwaitStreams(t.Context()))
	return n
}

// submit publishes until NATS has stored it.
func (n *poweredNATS) submit(t *testing.T, what string) {
	t.Helper()
	tick, deadline := time.NewTicker(readyPoll), time.Now().Add(readyTimeout)
	defer tick.Stop()
	for ; ; <-tick.C { // nothing shows when the streams are there again
		published, err := n.bus.PublishEncoded(event.SubmitSubject("default"), event.NewID(), []byte(what), 0)
		if err == nil {
			err = published.Wait(t.Context())
		}
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("submit %s: %v", what, err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// take reads until all that is wanted has come.
func take(t *testing.T, work <-chan bus.Delivery, wanted map[string]bool) {
	t.Helper()
	deadline := time.After(readyTimeout)
	for len(wanted) > 0 {
		select {
		case d := <-work:
			delete(wanted, string(d.Data))
			d.Ack()
		case <-deadline:
			t.Fatalf("%d submissions were stored and never handed over, among them %v", len(wanted), first(wanted))
		}
	}
}

func first(of map[string]bool) string {
	for each := range of {
		return each
	}
	return ""
}

// TestReadersGoOnAfterPowerLoss: when a NATS server has lost the end of its streams, or
// its last writes, readers of submissions are given the next ones. Half of a consumer's
// file is another matter: NATS then refuses the consumer, and its reader continues under
// another name (TestAReaderGoesOnWithATornConsumer of package bus).
func TestReadersGoOnAfterPowerLoss(t *testing.T) {
	t.Parallel()
	for name, powerOff := range map[string]func(*disk.Disk) error{
		"what was not forced is lost": (*disk.Disk).PowerOff,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newPoweredNATS(t, "1s")
			work, err := n.bus.Work(t.Context(), bus.Work{Stream: bus.SubmitStream, Durable: bus.IntakeDurable})
			must(t, err)
			wanted := map[string]bool{}
			// Long enough for the server to force some of it.
			for i, began := 0, time.Now(); time.Since(began) < 2500*time.Millisecond; i++ {
				wanted[fmt.Sprint("before ", i)] = true
				n.submit(t, fmt.Sprint("before ", i))
				take(t, work, wanted)
			}
			n.kill()
			must(t, powerOff(n.disk))
			must(t, n.start())
			must(t, n.awaitReady(t.Context()))
			for i := range 10 {
				wanted[fmt.Sprint("after ", i)] = true
				n.submit(t, fmt.Sprint("after ", i))
			}
			take(t, work, wanted)
		})
	}
}

// TestWhatIsStoredSurvivesPowerLoss: with `sync_interval: always` a submission that
// NATS has acknowledged is there after it has lost power.
func TestWhatIsStoredSurvivesPowerLoss(t *testing.T) {
	t.Parallel()
	n := newPoweredNATS(t, "always")
	wanted := map[string]bool{}
	for i := range 100 {
		wanted[fmt.Sprint(i)] = true
		n.submit(t, fmt.Sprint(i))
	}
	n.kill()
	must(t, n.disk.PowerOff())
	must(t, n.start())
	must(t, n.awaitReady(t.Context()))
	work, err := n.bus.Work(t.Context(), bus.Work{Stream: bus.SubmitStream, Durable: bus.IntakeDurable})
	must(t, err)
	take(t, work, wanted)
}

// TestAFailedWriteStopsOneStreamOnly: the leader goes on beside a stream whose writes
// NATS refuses for another reason than lost files. Its messages stay.
func TestAFailedWriteStopsOneStreamOnly(t *testing.T) {
	t.Parallel()
	n := newPoweredNATS(t, "always")
	n.submit(t, "stays")
	must(t, n.disk.Fail(true))
	published, err := n.bus.PublishEncoded(event.SubmitSubject("default"), event.NewID(), []byte("fails"), 0)
	must(t, err)
	if err := published.Wait(t.Context()); err == nil {
		t.Fatal("NATS has stored a message on a disk that fails")
	}
	must(t, n.disk.Fail(false))
	remade, err := n.bus.ConfigureStreams(t.Context())
	if err != nil || len(remade) > 0 {
		t.Errorf("the leader cannot begin: %v; created again: %v", err, remade)
	}
	state, err := n.bus.State(t.Context(), bus.SubmitStream)
	if err != nil || state.Last == 0 {
		t.Errorf("the stream is %+v, %v; want it with its message", state, err)
	}
}
