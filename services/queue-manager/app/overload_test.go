package app_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sys/unix"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/testkit/bustest"
	"muster.dev/muster/pkg/testkit/smalldisk"
	"muster.dev/muster/services/queue-manager/app"
)

// submitMany submits gangs of one worker without waiting in between.
func (w *world) submitMany(queue string, gangs int) []workload.ID {
	w.t.Helper()
	return w.submitFilled(queue, gangs, func() string { return "small" })
}

// submitFilled is submitMany with so much in the manifests.
func (w *world) submitFilled(queue string, gangs int, filler func() string) []workload.ID {
	w.t.Helper()
	ids, published := make([]workload.ID, gangs), make([]bus.Published, gangs)
	for i := range gangs {
		gang := gangOf(fmt.Sprintf("%s-%d", queue, i), queue, 1)
		ids[i] = gang.ID
		envelope, err := event.New(event.NewID(), "test", time.Now(), &event.WorkloadSubmitted{
			Workload: gang, Manifest: json.RawMessage(`{"kind":"RayCluster","filler":"` + filler() + `"}`),
		})
		if err != nil {
			w.t.Fatal(err)
		}
		if published[i], err = w.bus.PublishAsync(event.WorkloadSubject(queue), envelope); err != nil {
			w.t.Fatal(err)
		}
	}
	for _, p := range published {
		if err := p.Wait(w.ctx); err != nil {
			w.t.Fatal(err)
		}
	}
	return ids
}

// TestOneQueuesFloodDoesNotDelayAnothers: ten thousand gangs of one queue, then ten of
// another. What had been handed out when the ten came is before them. After that, the
// others wait for as many of the flood as are handed out until their subject is found, and
// take turns with it then.
func TestOneQueuesFloodDoesNotDelayAnothers(t *testing.T) {
	t.Parallel()
	const flood, few = 10_000, 10
	// Package bus looks for subjects after each 128 messages (lookEach), and hands out
	// none meanwhile. The look that is on its way when the ten come misses them, the next
	// one finds them, and their first message comes before the one after that is answered.
	const ahead = 3*128 + few
	w := newWorld(t, app.Queue{Name: "flood", Namespaces: []string{"flood"}}, app.Queue{Name: "other", Namespaces: []string{"other"}})
	w.submitMany("flood", flood)
	await(w, "the flood has begun", func(e *event.WorkloadChanged) bool { return e.Queue == "flood" })
	others := w.submitMany("other", few)
	handed := w.handedOut("flood")
	for _, id := range others {
		w.phase(id, workload.Queued)
	}
	queued := w.queuedBefore("flood", "other", few)
	t.Logf("of the flood %d gangs were queued before the last of the others, and %d handed out when those came", queued, handed)
	if handed > flood/2 {
		t.Fatalf("%d of the %d gangs were handed out when the others came: that shows nothing", handed, flood)
	}
	if queued > handed+ahead {
		t.Errorf("%d gangs of the flood were queued before the last of the others; want at most %d after the %d that were handed out when those came", queued, ahead, handed)
	}
}

// handedOut is how many submissions of a queue have left NATS; no other queue had any
// before them.
func (w *world) handedOut(queue string) int {
	w.t.Helper()
	js, err := jetstream.New(w.bus.Conn())
	if err != nil {
		w.t.Fatal(err)
	}
	stream, err := js.Stream(w.ctx, bus.WorkloadStream)
	if err != nil {
		w.t.Fatal(err)
	}
	consumers := stream.ListConsumers(w.ctx)
	for consumer := range consumers.Info() {
		if consumer.Config.FilterSubject == event.WorkloadSubject(queue) {
			return int(consumer.Delivered.Stream)
		}
	}
	w.t.Fatalf("no consumer reads the submissions of queue %s: %v", queue, consumers.Err())
	return 0
}

// queuedBefore is how many gangs of a queue were told before the last of the given number of
// another; the order in which they are told is that in which they were committed.
func (w *world) queuedBefore(queue, other string, others int) (before int) {
	w.t.Helper()
	events, err := w.bus.Replay(w.ctx, bus.EventsStream, "muster.events.*.*")
	if err != nil {
		w.t.Fatal(err)
	}
	for seen := map[workload.ID]bool{}; others > 0; {
		d := <-events.C
		_, payload, err := d.Event()
		if err != nil {
			w.t.Fatal(err)
		}
		changed := payload.(*event.WorkloadChanged)
		switch {
		case seen[changed.ID]:
		case changed.Queue == other:
			others--
		case changed.Queue == queue:
			before++
		}
		seen[changed.ID] = true
	}
	return before
}

// TestDeadLetters: an unprocessable message is kept with the reason, and holds up
// nothing.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("a", 4)
	published, err := w.bus.PublishEncoded(event.WorkloadSubject("default"), "nonsense", []byte("no event at all"), 0)
	if err == nil {
		err = published.Wait(w.ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.publish(event.WorkloadSubject("default"), &event.WorkloadCancel{Workload: "no id"})
	w.publish(event.WorkloadSubject("default"), &event.NodeRemoved{Cluster: cluster, Node: "a"})
	w.command(w.submit(gangOf("after", "default", 1)), event.Present, 1)
	reasons := []string{"not a CloudEvent", "no UUID", "not for queue-manager"}
	deadline := time.After(patience)
	for {
		dead, err := w.bus.DeadLetters(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		all := fmt.Sprintf("%+v", dead)
		missing := ""
		for _, reason := range reasons {
			if !strings.Contains(all, reason) {
				missing = reason
			}
		}
		if missing == "" && len(dead) == len(reasons) {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("kept is %s; %q is missing", all, missing)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// smallTablespace moves what is made in the database from now on to a file system
// of its own, of the given megabytes.
func (w *world) smallTablespace(megabytes int) (dir string) {
	w.t.Helper()
	dir = smalldisk.Mount(w.t, megabytes)
	space := filepath.Join(dir, "space")
	if err := os.Mkdir(space, 0o700); err != nil {
		w.t.Fatal(err)
	}
	if account, err := user.Lookup("postgres"); err == nil && os.Geteuid() == 0 {
		id, _ := strconv.Atoi(account.Uid)
		if err := os.Chown(space, id, -1); err != nil {
			w.t.Fatal(err)
		}
	}
	conn, err := pgx.Connect(w.ctx, w.ownerURL)
	if err != nil {
		w.t.Fatal(err)
	}
	name := filepath.Base(dir)
	w.t.Cleanup(func() { _ = conn.Close(w.ctx) })
	for _, statement := range []string{
		`CREATE TABLESPACE "` + name + `" LOCATION '` + space + `'`,
		// Manifests are the first that need room.
		`ALTER TABLE manifests SET TABLESPACE "` + name + `"`,
	} {
		if _, err := conn.Exec(w.ctx, statement); err != nil {
			w.t.Fatalf("%s: %v", statement, err)
		}
	}
	w.t.Cleanup(func() {
		for _, statement := range []string{`ALTER TABLE manifests SET TABLESPACE pg_default`, `DROP TABLESPACE "` + name + `"`} {
			if _, err := conn.Exec(w.ctx, statement); err != nil {
				w.t.Errorf("%s: %v", statement, err)
			}
		}
	})
	return dir
}

// TestAFullDiskOfPostgresLosesNothing: no submitter hears that something is queued
// that is not stored, and when there is room again everything is.
func TestAFullDiskOfPostgresLosesNothing(t *testing.T) {
	t.Parallel()
	// Its tables move to a file system of this machine.
	w := newWorldOn(t, postgres.Here(t), func(*app.Config) {})
	dir := w.smallTablespace(64)
	w.stop()
	filler := filepath.Join(dir, "filler")
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err != nil {
		t.Fatal(err)
	}
	const spare = 2 << 20
	if err := os.WriteFile(filler, make([]byte, int64(disk.Bfree)*disk.Bsize-spare), 0o600); err != nil {
		t.Fatal(err)
	}
	w.start()
	epoch := w.epoch()
	ids := w.submitFilled("default", 40, func() string { // Postgres compresses, but not this
		random := make([]byte, 100<<10)
		for i := range random {
			random[i] = byte(rand.Uint32())
		}
		return hex.EncodeToString(random)
	})
	deadline := time.After(patience)
	for w.epoch() == epoch { // a commit that fails ends the term
		select {
		case <-deadline:
			t.Fatal("the disk does not become full")
		case <-time.After(10 * time.Millisecond):
		}
	}
	events := map[workload.ID]bool{}
	for _, changed := range bustest.Heard[*event.WorkloadChanged](w.heard) {
		events[changed.ID] = true
	}
	if len(events) == len(ids) {
		t.Fatal("all are queued on a disk that is full")
	}
	for id := range events {
		answer, err := w.queries.Workloads(w.ctx, query.WorkloadsRequest{ID: id})
		if err != nil || len(answer.Workloads) != 1 {
			t.Errorf("workload %s was told to be queued and is not stored: %v", id, err)
		}
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		w.phase(id, workload.Queued)
	}
}

// epoch is that of the present leader.
func (w *world) epoch() (epoch int64) {
	w.t.Helper()
	conn, err := pgx.Connect(w.ctx, w.ownerURL)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = conn.Close(w.ctx) }()
	if err := conn.QueryRow(w.ctx, `SELECT epoch FROM leader`).Scan(&epoch); err != nil {
		w.t.Fatal(err)
	}
	return epoch
}
