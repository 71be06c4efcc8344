package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// An old snapshot of another session keeps vacuum from removing anything that has died since.
// Commits read no more pages for it: what they read is found by key, or added.
func TestAnOldSnapshotDoesNotStopTheQueue(t *testing.T) {
	t.Parallel()
	const few, many = 100, 600
	first, last := pagesOfGangs(t, few), pagesOfGangs(t, many)
	t.Logf("a gang admitted and ended: %d pages on average over %d, %d over %d", first, few, last, many)
	// A table or an index that is read through its dead rows would cost six times as much.
	if last > 2*first {
		t.Errorf("a gang admitted and ended read %d pages over %d of them, and %d over %d, under an old snapshot", first, few, last, many)
	}
}

// pagesOfGangs admits and ends gangs, one after the other, under an old snapshot, and
// returns how many pages each read on average.
func pagesOfGangs(t *testing.T, gangs int) int64 {
	t.Helper()
	l := open(t)
	conn := l.connect(t)
	// What vacuum reads is none of the commits'.
	for _, table := range []string{"workloads", "reservations", "manifests", "shapes", "node_resources", "outbox", "commits"} {
		if _, err := conn.Exec(t.Context(), `ALTER TABLE `+table+` SET (autovacuum_enabled = off)`); err != nil {
			t.Fatal(err)
		}
	}
	held, err := l.connect(t).BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	shown := func() (workloads int) {
		if err := held.QueryRow(t.Context(), `SELECT count(*) FROM workloads`).Scan(&workloads); err != nil {
			t.Fatal(err)
		}
		return workloads
	}
	before, version := shown(), l.version(t)
	commit := func(changes state.Changes) {
		version++
		changes.Epoch, changes.Version = l.term.Epoch, version
		if _, err := l.Commit(t.Context(), changes); err != nil {
			t.Fatal(err)
		}
	}
	for i := range gangs {
		changes := admitted(int64(i+1), fmt.Sprintf("gang-%d", i), 1, 1, 100)
		commit(changes)
		ended := changes.Added[0].Record
		ended.Phase, ended.Holding, ended.Times.Finished = workload.Succeeded, false, time.Now()
		commit(state.Changes{Updated: []workload.Record{ended}, Freed: []workload.ID{ended.ID}})
	}
	if now := shown(); now != before {
		t.Fatalf("the snapshot is not old: it shows %d workloads after %d", now, before)
	}
	l.term.End()
	l.Close() // the end of a session tells what it has read
	var pages, written int64
	for written < int64(gangs) {
		if err := conn.QueryRow(t.Context(), `SELECT sum(coalesce(heap_blks_read, 0) + coalesce(heap_blks_hit, 0) + coalesce(idx_blks_read, 0) + coalesce(idx_blks_hit, 0))::bigint,
			(SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 'workloads')
			FROM pg_statio_user_tables`).Scan(&pages, &written); err != nil {
			t.Fatal(err)
		}
	}
	return pages / int64(gangs)
}

// Plans are made while tables are small, and kept: none reads a table whole, which
// would become slow as it grows.
func TestCommitsReadNoTableWhole(t *testing.T) {
	t.Parallel()
	const cycles = 20 // more than the executions after which a plan is kept
	l := open(t)
	version := l.version(t)
	commit := func(changes state.Changes) {
		version++
		changes.Epoch, changes.Version = l.term.Epoch, version
		if _, err := l.Commit(t.Context(), changes); err != nil {
			t.Fatal(err)
		}
	}
	for i := range cycles {
		changes := admitted(int64(i+1), fmt.Sprintf("gang-%d", i), 1, 1, 100)
		commit(changes)
		running := changes.Added[0].Record
		running.Phase = workload.Running
		commit(state.Changes{Updated: []workload.Record{running}})
		ended := running
		ended.Phase, ended.Holding, ended.Times.Finished = workload.Succeeded, false, time.Now()
		commit(state.Changes{Updated: []workload.Record{ended}, Freed: []workload.ID{ended.ID}})
	}
	l.term.End()
	l.Close() // the end of a session tells what it has done
	conn := l.connect(t)
	for _, table := range []string{"workloads", "reservations", "manifests", "shapes", "node_resources"} {
		t.Run(table, func(t *testing.T) {
			var whole, indexed int64
			for indexed < cycles {
				err := conn.QueryRow(t.Context(), `SELECT seq_scan, idx_scan FROM pg_stat_user_tables WHERE relname = $1`, table).Scan(&whole, &indexed)
				if err != nil {
					t.Fatalf("table %s: %v, with %d scans by index", table, err, indexed)
				}
			}
			t.Logf("%s: %d scans by index, %d whole", table, indexed, whole)
			if whole >= cycles {
				t.Errorf("table %s was read whole %d times in %d cycles of a gang", table, whole, cycles)
			}
		})
	}
}

// Each session has its limits on the server, whichever client connects.
func TestSessionsHaveLimits(t *testing.T) {
	t.Parallel()
	l := open(t)
	limits := store.Timeouts{Statement: 7 * time.Second, Lock: 3 * time.Second, Idle: 4 * time.Second, Peer: 2 * time.Second}
	s, err := store.Open(t.Context(), l.service, limits)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for setting, want := range map[string]string{
		"statement_timeout": "7s", "lock_timeout": "3s", "idle_in_transaction_session_timeout": "4s", "tcp_user_timeout": "2000",
	} {
		t.Run(setting, func(t *testing.T) {
			if got, err := s.Setting(t.Context(), setting); err != nil || got != want {
				t.Errorf("%s is %q, %v; want %s", setting, got, err, want)
			}
		})
	}
}

// A lock that another session holds for long ends a commit with an error, not the queue.
func TestALockThatIsHeldEndsTheWait(t *testing.T) {
	t.Parallel()
	l := open(t)
	limits := store.DefaultTimeouts()
	limits.Lock = 200 * time.Millisecond
	s, err := store.Open(t.Context(), l.service, limits)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	changes := admitted(1, "gang", 1, 1, 100)
	changes.Epoch, changes.Version = l.term.Epoch, l.version(t)+1
	holder := l.connect(t)
	tx, err := holder.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `LOCK TABLE workloads IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(t.Context(), changes); err == nil {
		t.Fatal("it was written under the lock of another session")
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(t.Context(), changes); err != nil {
		t.Errorf("after the lock: %v", err)
	}
}
