package app_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/s2"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/app"
	"muster.dev/muster/services/queue-manager/replay"
)

// live plays the life of some gangs on a queue-manager, on few nodes, so that
// some wait, some are cancelled and some end. It returns when all have an end.
func (w *world) live(gangs int, chance *rand.Rand, prefix string) {
	w.t.Helper()
	ids := make([]workload.ID, gangs)
	for i := range gangs {
		ids[i] = w.submit(gangOf(fmt.Sprintf("%s-%d", prefix, i), "default", 1+chance.IntN(3)))
	}
	cancelled := map[workload.ID]bool{}
	for i, id := range ids {
		if chance.IntN(4) == 0 {
			w.cancel("default", id)
			cancelled[id] = true
		}
		if i%10 == 0 {
			w.node(fmt.Sprintf("%s-%d", prefix, i), 4)
		}
	}
	for _, id := range ids {
		ended := await(w, "admitted or cancelled", func(e *event.WorkloadChanged) bool {
			return e.ID == id && (e.Phase == workload.Admitted || e.Phase == workload.Cancelled)
		})
		if ended.Phase == workload.Cancelled {
			continue
		}
		if cancelled[id] { // so the command to start it may never have been published
			w.command(id, event.Absent, 1)
			w.status(event.GangStatus{Workload: id, Attempt: 1, Released: true, Gone: true})
			continue
		}
		command := w.command(id, event.Present, 1)
		w.status(event.GangStatus{Workload: id, Attempt: 1, Created: true})
		w.pods(command)
		w.status(event.GangStatus{Workload: id, Attempt: 1, Created: true, Outcome: event.OutcomeSucceeded, Released: true, Gone: true})
	}
	for _, id := range ids {
		await(w, "ended", func(e *event.WorkloadChanged) bool { return e.ID == id && e.Phase.Final() })
	}
}

func (w *world) replay() replay.Report {
	w.t.Helper()
	report, err := replay.Run(w.ctx, w.config.DatabaseURL, time.Time{}, func(replay.Report) {})
	if err != nil {
		w.t.Fatal(err)
	}
	return report
}

// stopReplayable stops the leader when a checkpoint is kept to replay its decisions from;
// it is written beside the first decisions, and a leader that stops does not end it.
func (w *world) stopReplayable() {
	w.t.Helper()
	for tick := time.NewTicker(20 * time.Millisecond); ; <-tick.C {
		_, err := replay.Run(w.ctx, w.config.DatabaseURL, time.Time{}, func(replay.Report) {})
		if err == nil {
			break
		}
		if !errors.Is(err, replay.ErrNoCheckpoint) {
			w.t.Fatal(err)
		}
	}
	w.stop()
}

// asOwner changes what is kept as only the owner of the tables can.
func (w *world) asOwner(statement string, args ...any) {
	w.t.Helper()
	conn, err := pgx.Connect(w.ctx, w.ownerURL)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = conn.Close(w.ctx) }()
	// Even the owner has to act as the leader of the present epoch.
	if _, err := conn.Exec(w.ctx, `SELECT set_config('muster.epoch', (SELECT epoch::text FROM leader), false)`); err != nil {
		w.t.Fatal(err)
	}
	tag, err := conn.Exec(w.ctx, statement, args...)
	if err != nil || tag.RowsAffected() == 0 {
		w.t.Fatalf("%s: %d rows, %v", statement, tag.RowsAffected(), err)
	}
}

func TestReplayedDecisionsComeOutTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	w.node("a", 8)
	w.live(60, chance, "first")
	w.submit(gangOf("too-large", "default", 100)) // waits through all terms
	w.stop()
	w.start()
	w.live(60, chance, "second")
	before := w.replay() // beside the running leader
	if before.Difference != nil || before.Terms != 2 || before.Checkpoints != 1 {
		t.Fatalf("replayed beside the leader: %+v %+v", before, before.Difference)
	}
	leader := w.stopOnce
	w.start() // a standby
	leader()  // which takes over what it has followed
	w.live(60, chance, "third")
	w.stopReplayable()
	report := w.replay()
	if report.Difference != nil || report.Terms != 3 || report.Checkpoints != 1 || report.Decisions <= before.Decisions {
		t.Fatalf("replayed after %+v: %+v %+v", before, report, report.Difference)
	}
	t.Logf("replayed %d decisions of %d inputs in %d terms", report.Decisions, report.Inputs, report.Terms)
}

func TestChangedRecordsAreFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("a", 8)
	w.live(20, rand.New(rand.NewPCG(1, 1)), "gang")
	w.stopReplayable()
	if report := w.replay(); report.Difference != nil {
		t.Fatalf("before any change: %+v", report.Difference)
	}
	rewrite := func(column, from, to string) {
		t.Helper()
		conn, err := pgx.Connect(w.ctx, w.ownerURL)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(w.ctx) }()
		rows, _ := conn.Query(w.ctx, `SELECT number, `+column+` FROM decisions ORDER BY number`)
		type row struct {
			Number  int64
			Content []byte
		}
		all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range all {
			content, err := s2.Decode(nil, r.Content)
			if err != nil {
				t.Fatal(err)
			}
			if changed := strings.Replace(string(content), from, to, 1); changed != string(content) {
				w.asOwner(`UPDATE decisions SET `+column+` = $1 WHERE number = $2`, s2.Encode(nil, []byte(changed)), r.Number)
				return
			}
		}
		t.Fatalf("no %s has %q", column, from)
	}
	for _, change := range []struct {
		name       string
		make, undo func()
		want       string
	}{
		{
			"a reason", func() { rewrite("outcome", "cancelled on request", "cancelled by a stranger") },
			func() { rewrite("outcome", "cancelled by a stranger", "cancelled on request") }, "the outcome is another one",
		},
		{
			"a submission", func() { rewrite("inputs", `"cpu":1000`, `"cpu":1001`) },
			func() { rewrite("inputs", `"cpu":1001`, `"cpu":1000`) }, "the outcome is another one",
		},
		{
			"bytes", func() {
				w.asOwner(`UPDATE decisions SET inputs = set_byte(inputs, 0, 255 - get_byte(inputs, 0)) WHERE number = 1`)
			},
			func() {
				w.asOwner(`UPDATE decisions SET inputs = set_byte(inputs, 0, 255 - get_byte(inputs, 0)) WHERE number = 1`)
			}, "damaged",
		},
		{
			"one that is gone", func() { w.asOwner(`UPDATE decisions SET epoch = epoch + 100 WHERE number = 1`) },
			func() { w.asOwner(`UPDATE decisions SET epoch = epoch - 100 WHERE number = 1`) }, "is missing",
		},
	} {
		t.Run(change.name, func(t *testing.T) {
			change.make()
			report := w.replay()
			if report.Difference == nil || !strings.Contains(report.Difference.What, change.want) {
				t.Errorf("%s: found %+v, want %q", change.name, report.Difference, change.want)
			}
			change.undo()
			if report := w.replay(); report.Difference != nil {
				t.Fatalf("%s: changed back: %+v", change.name, report.Difference)
			}
		})
	}
}

// A leader whose term has been long enough begins another one; each can be
// replayed, and begins with a checkpoint of its own once the last one is old.
func TestTermsEndAndAreReplayed(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, func(c *app.Config) { c.LongestTerm = time.Second })
	w.node("a", 8)
	w.live(10, rand.New(rand.NewPCG(2, 2)), "early")
	conn, err := pgx.Connect(w.ctx, w.ownerURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(w.ctx) }()
	deadline := time.After(patience)
	for terms := map[int64]bool{}; len(terms) < 4; {
		var epoch int64
		if err := conn.QueryRow(w.ctx, `SELECT epoch FROM leader`).Scan(&epoch); err != nil {
			t.Fatal(err)
		}
		terms[epoch] = true
		select {
		case <-deadline:
			t.Fatalf("%d terms after %s", len(terms), patience)
		case <-time.After(10 * time.Millisecond):
		}
	}
	w.live(10, rand.New(rand.NewPCG(3, 3)), "late")
	w.stopReplayable()
	report := w.replay()
	if report.Difference != nil || report.Terms < 2 {
		t.Errorf("replayed: %+v, %+v", report, report.Difference)
	}
	var checkpoints int
	if err := conn.QueryRow(w.ctx, `SELECT count(DISTINCT epoch) FROM bases`).Scan(&checkpoints); err != nil || checkpoints < 2 {
		t.Errorf("%d checkpoints, %v: want one for each second", checkpoints, err)
	}
}
