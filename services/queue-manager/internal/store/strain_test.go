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
// Commits read no more pages of any table for it: what they read is found by key, or added.
func TestAnOldSnapshotDoesNotStopTheQueue(t *testing.T) {
	t.Parallel()
	const few, many = 100, 1200
	first, last := pagesOfGangs(t, few), pagesOfGangs(t, many)
	for table, before := range first {
		t.Run(table, func(t *testing.T) {
			after := last[table]
			t.Logf("a gang admitted and ended: %.1f pages of %s and %.1f of its indexes over %d, %.1f and %.1f over %d",
				before.heap, table, before.index, few, after.heap, after.index, many)
			// A table of the many, read through its dead rows, has tens of pages. All gangs
			// are on one node: Postgres follows the versions of its row from page to page
			// for each reader.
			if table != "node_resources" && after.heap > before.heap+1 {
				t.Errorf("under an old snapshot a gang read %.1f pages of %s over %d of them, and %.1f over %d", before.heap, table, few, after.heap, many)
			}
			// The index of the few is a page, that of the many a root and leaves.
			if after.index > 2*before.index+1 {
				t.Errorf("under an old snapshot a gang read %.1f pages of the indexes of %s over %d of them, and %.1f over %d", before.index, table, few, after.index, many)
			}
		})
	}
}

// pages are those of a table that were read, on average for a gang.
type pages struct{ heap, index float64 }

// pagesOfGangs admits and ends gangs, one after the other, under an old snapshot, and
// returns how many pages each read of each table.
func pagesOfGangs(t *testing.T, gangs int) map[string]pages {
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
	awaitInserted(t, conn, gangs)
	rows, err := conn.Query(t.Context(), `SELECT relname::text, (heap_blks_read + heap_blks_hit)::float8, (coalesce(idx_blks_read, 0) + coalesce(idx_blks_hit, 0))::float8
		FROM pg_statio_user_tables WHERE heap_blks_read + heap_blks_hit > 0`)
	if err != nil {
		t.Fatal(err)
	}
	read, table, of := map[string]pages{}, "", pages{}
	_, err = pgx.ForEachRow(rows, []any{&table, &of.heap, &of.index}, func() error {
		read[table] = pages{of.heap / float64(gangs), of.index / float64(gangs)}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// awaitInserted waits until the server tells of the given number of workloads.
func awaitInserted(t *testing.T, conn *pgx.Conn, workloads int) {
	t.Helper()
	for inserted := 0; inserted < workloads; {
		err := conn.QueryRow(t.Context(), `SELECT n_tup_ins FROM pg_stat_user_tables WHERE relname = 'workloads'`).Scan(&inserted)
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Plans are made while tables are small, and kept: no commit reads a table whole, which
// would become slow as it grows. What begins a term may.
func TestCommitsReadNoTableWhole(t *testing.T) {
	t.Parallel()
	const cycles = 20 // more than the executions after which a plan is kept
	one, all := scansOfCycles(t, 1), scansOfCycles(t, cycles)
	for _, table := range []string{"workloads", "reservations", "manifests", "shapes", "node_resources"} {
		t.Run(table, func(t *testing.T) {
			t.Logf("%s: %d scans by index and %d whole in a cycle, %d and %d in %d", table, one[table].indexed, one[table].whole, all[table].indexed, all[table].whole, cycles)
			if all[table].whole > one[table].whole {
				t.Errorf("table %s was read whole %d times in a cycle of a gang, and %d times in %d", table, one[table].whole, all[table].whole, cycles)
			}
			if all[table].indexed < cycles {
				t.Errorf("table %s was read by index %d times in %d cycles of a gang", table, all[table].indexed, cycles)
			}
		})
	}
}

// scans are those of a table.
type scans struct{ indexed, whole int64 }

// scansOfCycles admits, runs and ends gangs in a term, and returns how often each table was
// read.
func scansOfCycles(t *testing.T, cycles int) map[string]scans {
	t.Helper()
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
	awaitInserted(t, conn, cycles)
	rows, err := conn.Query(t.Context(), `SELECT relname::text, coalesce(idx_scan, 0), seq_scan FROM pg_stat_user_tables`)
	if err != nil {
		t.Fatal(err)
	}
	read, table, of := map[string]scans{}, "", scans{}
	if _, err = pgx.ForEachRow(rows, []any{&table, &of.indexed, &of.whole}, func() error { read[table] = of; return nil }); err != nil {
		t.Fatal(err)
	}
	return read
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
