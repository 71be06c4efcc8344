package e2e

import (
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/local/postgres"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/test/stack"
)

// restored dumps the world's database as docs/operations.md says, and restores the
// dump into another one, whose URL it returns.
func (w *world) restored() string {
	w.t.Helper()
	binaries, err := postgres.Installed(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	dump := filepath.Join(w.t.TempDir(), "muster.dump")
	run := func(program string, arguments ...string) {
		w.t.Helper()
		if output, err := exec.CommandContext(w.ctx, filepath.Join(binaries, program), arguments...).CombinedOutput(); err != nil {
			w.t.Fatalf("%s: %v: %s", program, err, output)
		}
	}
	run("pg_dump", "--format=custom", "--file="+dump, "--dbname="+w.database)
	parsed, err := url.Parse(w.database)
	if err != nil {
		w.t.Fatal(err)
	}
	name := "restored_" + strings.TrimPrefix(parsed.Path, "/")
	conn, err := pgx.Connect(w.ctx, w.database)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = conn.Close(w.ctx) }()
	if _, err := conn.Exec(w.ctx, "CREATE DATABASE "+name); err != nil {
		w.t.Fatal(err)
	}
	admin := w.database
	w.t.Cleanup(func() { dropDatabase(w.t, admin, name) })
	parsed.Path = "/" + name
	run("pg_restore", "--exit-on-error", "--dbname="+parsed.String(), dump)
	w.database = parsed.String()
	return w.database
}

func dropDatabase(t *testing.T, admin, name string) {
	conn, err := pgx.Connect(t.Context(), admin)
	if err == nil {
		_, err = conn.Exec(t.Context(), "DROP DATABASE "+name+" WITH (FORCE)")
	}
	if err != nil {
		t.Logf("drop database %s: %v", name, err) // it goes with its server
	}
}

// Everything is lost but a backup of Postgres and what runs in the cluster: the
// streams are made and filled again, what runs goes on untouched, and what waits
// starts when there is room.
func TestABackupOfPostgresIsEnough(t *testing.T) {
	t.Parallel()
	// pg_dump must not be older than the server.
	w := startWorld(t, stack.Options{DatabaseURL: databases.Here(t).Database(t)})
	w.nodes("gpu", 1, "cpu=8", "memory=32Gi", "nvidia.com/gpu=1")
	runs := w.submit(stack.RayCluster("runs", 1, 1))
	w.reaches(runs, workload.Running)
	waits := w.submit(stack.RayCluster("waits", 1, 1))
	w.waits(waits, workload.ReasonFit)
	before, err := w.rayClusters().Get(t.Context(), "runs", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	head := w.headUID(runs)

	if err := w.StopService(stack.QueueManager); err != nil {
		t.Fatal(err)
	}
	if err := w.Restore(t.Context(), w.restored()); err != nil {
		t.Fatal(err)
	}
	if record := w.one(runs); record.Phase != workload.Running || record.Attempt != 1 {
		t.Errorf("what ran is %s in attempt %d", record.Phase, record.Attempt)
	}
	if record := w.one(waits); record.Phase != workload.Queued {
		t.Errorf("what waited is %s", record.Phase)
	}
	w.until("the command is in the new stream", func() bool {
		message, err := w.Bus.LastMessage(w.ctx, bus.DispatchStream, event.DispatchSubject(w.Pool, runs))
		return err == nil && message != nil
	})
	after, err := w.rayClusters().Get(t.Context(), "runs", metav1.GetOptions{})
	if err != nil || after.GetUID() != before.GetUID() || w.headUID(runs) != head {
		t.Errorf("what ran was touched: %v, %v", after.GetUID(), err)
	}
	w.cancel(runs)
	w.reaches(waits, workload.Running)
}
