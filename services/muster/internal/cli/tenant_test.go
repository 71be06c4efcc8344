package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/zap"

	"muster.dev/muster/deploy/nats/access"
	"muster.dev/muster/deploy/nats/keys"
	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/muster/internal/cli"
)

// startGuarded runs a NATS server with the users of an installation and a tenant of
// queue q, and returns its URL and the directory of the seeds.
func startGuarded(t *testing.T) (url, dir string) {
	t.Helper()
	dir = t.TempDir()
	tenant, err := access.Tenant("a", "q")
	if err != nil {
		t.Fatal(err)
	}
	users := append(access.Users("here"), tenant)
	var names []string
	for _, user := range users {
		names = append(names, user.Name)
	}
	public, err := keys.Ensure(dir, names)
	if err != nil {
		t.Fatal(err)
	}
	var config bytes.Buffer
	fmt.Fprintf(&config, "jetstream { store_dir: %q, max_file_store: 8GB }\n", t.TempDir())
	if err := access.WriteConfig(&config, users, public); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "nats.conf")
	if err := os.WriteFile(file, config.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	options, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	options.Host, options.Port, options.NoLog, options.NoSigs = "127.0.0.1", -1, true, true
	s, err := server.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server takes no connections")
	}
	return s.ClientURL(), dir
}

// as connects as a user.
func as(t *testing.T, url, dir, user string) *bus.Bus {
	t.Helper()
	b, err := bus.Connect(t.Context(), bus.Options{URL: url, Name: user, Logger: zap.NewNop(), CredentialsFile: keys.File(dir, user)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// TestWhatATenantMayType: everything that a tenant needs works, and everything else
// ends at once with the reason.
func TestWhatATenantMayType(t *testing.T) {
	url, dir := startGuarded(t)
	t.Setenv("MUSTER_NATS_URL", url)
	t.Setenv("MUSTER_NATS_CREDENTIALS", keys.File(dir, "tenant-a"))
	manager := as(t, url, dir, access.QueueManager)
	if err := manager.EnsureStreams(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := manager.GuardJetStream(t.Context()); err != nil {
		t.Fatal(err)
	}
	submitted, err := as(t, url, dir, access.Intake).Work(t.Context(), bus.Work{Stream: bus.SubmitStream, Durable: bus.IntakeDurable})
	if err != nil {
		t.Fatal(err)
	}
	publishEvent := func(phase workload.Phase) {
		id := event.WorkloadID("laptop", "1")
		e, err := event.New(event.NewID(), "test", time.Now(), &event.WorkloadChanged{Record: workload.Record{
			Workload: workload.Workload{ID: id, Queue: "q", Kind: "RayJob", Name: "a"}, Phase: phase}})
		if err != nil {
			t.Error(err)
			return
		}
		if err := manager.Publish(t.Context(), event.EventsSubject("q", id), e); err != nil {
			t.Error(err)
		}
	}
	var answering sync.WaitGroup
	for subject, line := range map[string]string{
		event.SubmitSubject("q"):               "submit -f - -q q --source laptop --id 1 --wait --timeout 30s",
		event.SubmitSubjectAs("q", "tenant-a"): "submit -f - -q q --as tenant-a --source laptop --id 2 --wait=submitted",
	} {
		t.Run(line, func(t *testing.T) {
			answering.Go(func() {
				select {
				case d := <-submitted:
					d.Ack()
					if d.Subject != subject {
						t.Errorf("%s: came on %s, want %s", line, d.Subject, subject)
					}
				case <-time.After(30 * time.Second):
					t.Errorf("%s: nothing came", line)
				}
				if !strings.Contains(line, "submitted") {
					publishEvent(workload.Queued)
					publishEvent(workload.Running)
				}
			})
			if got := run(t, job, strings.Fields(line)...); got.code != exit.OK {
				t.Errorf("%s: %+v, want exit code 0", line, got)
			}
			answering.Wait()
		})
	}
	for _, line := range []string{
		"submit -f - -q theirs --wait=submitted", "submit -f - -q theirs", "submit -f - -q q --as tenant-b --wait=submitted",
		"get workloads", "get queues", "get nodes", "get dead-letters", "explain a", "describe workload a", "cancel a", "release a --force --why x", "events", "events --follow -q q", "events --new",
	} {
		t.Run(line, func(t *testing.T) {
			began := time.Now()
			got := run(t, job, strings.Fields(line)...)
			if got.code != exit.Failure || !strings.Contains(got.errOut, "NATS refuses it to this user") || !strings.Contains(got.errOut, "operator's rights") {
				t.Errorf("%s: %+v, want exit code 1 and the reason", line, got)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("%s: took %s to say so", line, took)
			}
		})
	}
	listens(t, func() { publishEvent(workload.Succeeded) })
}

// listens types "events --new" and ends it when an event is shown.
func listens(t *testing.T, publishEvent func()) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	shown := make(lineWriter, 16)
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Run(ctx, strings.Fields("events --new -q q"), strings.NewReader(""), shown, os.Stderr)
	}()
	again := time.NewTicker(200 * time.Millisecond) // nothing says when it listens
	defer again.Stop()
	for {
		select {
		case <-again.C:
			publishEvent()
		case line := <-shown:
			if !strings.Contains(line, "succeeded") {
				t.Errorf("shown is %q, want a workload that succeeded", line)
			}
			cancel()
			if code := <-ended; code != exit.OK {
				t.Errorf("events --new ended with %d", code)
			}
			return
		case <-ctx.Done():
			t.Fatal("no event is shown")
		}
	}
}

// lineWriter hands over what is written; what is not read is dropped.
type lineWriter chan string

// Write implements io.Writer.
func (w lineWriter) Write(line []byte) (int, error) {
	select {
	case w <- string(line):
	default:
	}
	return len(line), nil
}
