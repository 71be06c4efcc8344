package store_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// leadersLock takes the lock that the leader's session holds.
const leadersLock = `SELECT pg_try_advisory_lock(120351215609202)`

func try(t *testing.T, conn *pgx.Conn, statement string) error {
	t.Helper()
	_, err := conn.Exec(t.Context(), statement)
	return err
}

// Who has stolen the login of the service ends no term of a leader that lives.
func TestAStolenLoginEndsNoLiveLeadersTerm(t *testing.T) {
	t.Parallel()
	l := open(t)
	keeping, stop := context.WithCancel(t.Context())
	var kept sync.WaitGroup
	kept.Go(func() { _ = l.term.Keep(keeping) }) // until it is stopped: the lock shows whether it was kept
	defer func() { stop(); kept.Wait() }()
	thief := connectAs(t, l.url, "muster_queue_manager")
	usurp := []string{
		`UPDATE leader SET epoch = epoch + 1, holder = 'thief', since = now()`, `UPDATE leader SET epoch = 0`,
		`UPDATE leader SET holder = 'thief'`, `UPDATE leader SET since = now()`,
	}
	for _, statement := range usurp {
		t.Run(statement, func(t *testing.T) {
			refused(t, thief, statement)
		})
	}
	var had bool
	if err := thief.QueryRow(t.Context(), leadersLock).Scan(&had); err != nil || had {
		t.Fatalf("the thief has the leader's lock: %t, %v", had, err)
	}
	if err := try(t, thief, `SELECT pg_advisory_lock_shared(1)`); err != nil {
		t.Fatal(err)
	}
	refused(t, thief, usurp[0]) // another lock is none
	l.commit(t, l.sameNode(t))  // the leader writes on

	stop()
	kept.Wait()
	l.term.End()
	for _, statement := range usurp {
		t.Run(statement, func(t *testing.T) { // nor without the lock, when no process leads
			refused(t, thief, statement)
		})
	}
	// Postgres frees the lock when it has noticed that the session has ended.
	if err := try(t, thief, `SELECT pg_advisory_lock(120351215609202)`); err != nil {
		t.Fatalf("wait for the lock of a leader that is gone: %v", err)
	}
	for _, statement := range []string{
		`UPDATE leader SET epoch = 0`, `UPDATE leader SET since = now()`, `UPDATE leader SET epoch = 9000000000000000`,
		`UPDATE leader SET epoch = epoch + 1, holder = repeat('x', 1000)`,
	} {
		t.Run(statement, func(t *testing.T) {
			refused(t, thief, statement)
		})
	}
	if err := try(t, thief, `UPDATE leader SET epoch = epoch + 1`); err != nil {
		t.Errorf("who holds the lock begins no epoch: %v", err)
	}
	if err := try(t, thief, `SELECT pg_advisory_unlock_all()`); err != nil {
		t.Fatal(err)
	}
	if next, err := l.Lead(t.Context(), "successor", silence, func() {}); err != nil {
		t.Errorf("the service cannot lead any more: %v", err)
	} else {
		next.End()
	}
}

// A stolen login may ask to keep nothing of what has happened, and to keep it in
// tables of its own; it loses and hides nothing.
func TestAStolenLoginKeepsWhatHasHappened(t *testing.T) {
	t.Parallel()
	l := open(t)
	owner := l.connect(t)
	for _, statement := range []string{
		`SELECT set_config('muster.epoch', (SELECT epoch::text FROM leader), false)`,
		`INSERT INTO history (workload, at, epoch, version, phase, attempt) VALUES (gen_random_uuid(), now() - interval '1 hour', 1, 1, 'queued', 1)`,
	} {
		if err := try(t, owner, statement); err != nil {
			t.Fatal(err)
		}
	}
	thief := connectAs(t, l.url, "muster_queue_manager")
	if err := try(t, thief, `SELECT set_config('muster.epoch', (SELECT epoch::text FROM leader), false)`); err != nil {
		t.Fatal(err)
	}
	count := func() (rows int) {
		t.Helper()
		if err := owner.QueryRow(t.Context(), `SELECT count(*) FROM public.history`).Scan(&rows); err != nil {
			t.Fatal(err)
		}
		return rows
	}
	before := count()
	if before == 0 {
		t.Fatal("there is no history to lose")
	}
	for _, statement := range []string{
		`SELECT keep_partitions_of((SELECT epoch FROM leader), 'history', 1, '-30 days')`,
		`SELECT keep_partitions((SELECT epoch FROM leader), 1, '-30 days', '-30 days')`,
		`SELECT keep_partitions_of((SELECT epoch FROM leader), 'history', 1000000, '1 day')`,
	} {
		t.Run(statement, func(t *testing.T) {
			began := time.Now()
			if err := try(t, thief, statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
			if rows := count(); rows != before {
				t.Errorf("%s: %d rows of history are left of %d, after %s", statement, rows, before, time.Since(began))
			}
		})
	}
	// Tables of the thief's own stand in for none of the ledger's.
	for _, statement := range []string{
		`CREATE TEMP TABLE leader AS SELECT true AS only_row, 7::bigint AS epoch`, `SELECT set_config('muster.epoch', '7', false)`,
	} {
		if err := try(t, thief, statement); err != nil {
			t.Fatal(err)
		}
	}
	for _, statement := range []string{`SELECT assert_leader(7)`, `DELETE FROM workloads`} {
		t.Run(statement, func(t *testing.T) {
			if err := try(t, thief, statement); err == nil || !strings.Contains(err.Error(), "MUFEN") {
				t.Errorf("%s with a leader of its own: %v, want it fenced", statement, err)
			}
		})
	}
	var unsafe []string
	if err := owner.QueryRow(t.Context(), `SELECT coalesce(array_agg(p.proname::text), '{}') FROM pg_proc p
		WHERE p.pronamespace = 'public'::regnamespace AND NOT coalesce(p.proconfig::text LIKE '%pg_temp%', false)`).Scan(&unsafe); err != nil || len(unsafe) > 0 {
		t.Errorf("these functions may read tables of the caller's: %v, %v; name pg_temp last in their search_path", unsafe, err)
	}
}
