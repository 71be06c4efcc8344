package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/services/queue-manager/internal/store"
)

func (l ledger) connect(t *testing.T) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), l.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

// again opens the same database in another process, as it were.
func (l ledger) again(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), l.service, store.DefaultTimeouts())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// A writer that has not named its epoch is refused, statement by statement, even with all
// rights, on every table but that of the leader itself and that of the migrations.
func TestEveryStatementIsFenced(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.commit(t, admitted(1, "gang", 1, 1, 100))
	conn := l.connect(t)
	rows, err := conn.Query(t.Context(), `SELECT c.relname, (SELECT quote_ident(a.attname) FROM pg_attribute a
			WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attidentity = '' AND a.attgenerated = '' ORDER BY a.attnum LIMIT 1)
		FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition`)
	if err != nil {
		t.Fatal(err)
	}
	columns := map[string]string{}
	var table, column string
	if _, err := pgx.ForEachRow(rows, []any{&table, &column}, func() error { columns[table] = column; return nil }); err != nil {
		t.Fatal(err)
	}
	free := map[string]bool{"leader": true, "goose_db_version": true}
	fenced := 0
	for table, column := range columns {
		if free[table] {
			continue
		}
		fenced++
		for _, statement := range []string{"INSERT INTO " + table + " DEFAULT VALUES", "UPDATE " + table + " SET " + column + " = " + column, "DELETE FROM " + table} {
			t.Run(statement, func(t *testing.T) {
				if statement == "DELETE FROM quarantine" {
					return // an operator takes workloads out of it
				}
				_, err := conn.Exec(t.Context(), statement)
				var refused *pgconn.PgError
				if !errors.As(err, &refused) || refused.Code != "MUFEN" {
					t.Errorf("%s returned %v, want SQLSTATE MUFEN", statement, err)
				}
			})
		}
	}
	if fenced < 20 {
		t.Errorf("%d tables are fenced, of %d; want at least 20", fenced, len(columns))
	}
}

func TestAPlanMadeOnAnOldVersionIsRefused(t *testing.T) {
	t.Parallel()
	l := open(t)
	changes := admitted(1, "late", 1, 1, 100)
	changes.Epoch, changes.Version = l.term.Epoch, l.version(t) // the version that is there already
	if _, err := l.Commit(t.Context(), changes); !errors.Is(err, store.ErrStale) {
		t.Fatalf("commit returned %v, want ErrStale", err)
	}
}

// The guards hold after each statement, so a bug that writes one half only is
// caught in that very statement.
func TestHalvesAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ statement, constraint string }{
		"places of a started gang removed":   {`DELETE FROM reservations`, "all_or_nothing"},
		"a started gang queued, places kept": {`UPDATE workloads SET phase = 'queued', holding = false`, "all_or_nothing"},
		"a gang that shrinks, places kept":   {`UPDATE workloads SET gang = 1`, "all_or_nothing"},
		"a workload removed, places kept":    {`DELETE FROM workloads`, "all_or_nothing"},
		"places doubled": {`INSERT INTO reservations SELECT workload, attempt, cluster, node, 'more', pods, hostname, requests
			FROM reservations`, "all_or_nothing"},
		"places of no workload": {`INSERT INTO reservations SELECT gen_random_uuid(), attempt, cluster, node, pod_set, pods, hostname, requests
			FROM reservations`, "all_or_nothing"},
		"a node removed with places on it": {`DELETE FROM node_resources`, "node_in_use"},
		"a finished one that holds nothing stays live": {`WITH gone AS (DELETE FROM reservations)
			UPDATE workloads SET phase = 'failed', holding = false`, "live"},
		"a queue that is not there": {`UPDATE workloads SET queue = 'nowhere'`, "workloads_queue"},
		"a place lost to a resize":  {`UPDATE reservations SET pods = 1`, "all_or_nothing"},
		"a changed reservation":     {`UPDATE reservations SET node = 'other'`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := open(t)
			l.commit(t, admitted(1, "gang", 2, 2, 100))
			conn := l.connect(t)
			tx, err := conn.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback(t.Context()) }()
			if _, err := tx.Exec(t.Context(), `SELECT assert_leader($1)`, l.term.Epoch); err != nil {
				t.Fatal(err)
			}
			_, err = tx.Exec(t.Context(), c.statement)
			var refused *pgconn.PgError
			if !errors.As(err, &refused) || refused.ConstraintName != c.constraint {
				t.Errorf("%s: got %v, want a violation of %q", c.statement, err, c.constraint)
			}
		})
	}
}

func TestAFinishedWorkloadMovesToTheArchive(t *testing.T) {
	t.Parallel()
	l := open(t)
	changes := admitted(1, "gang", 1, 1, 100)
	l.commit(t, changes)
	record := changes.Added[0].Record
	record.Phase, record.Holding, record.Times.Finished = workload.Succeeded, false, time.Now()
	again := admitted(2, "other", 1, 1, 100) // takes its name in the very same commit
	again.Added[0].Name = "gang"
	again.Updated, again.Freed = []workload.Record{record}, []workload.ID{record.ID}
	l.commit(t, again)
	for _, table := range []string{"workloads", "manifests", "archive"} {
		t.Run(table, func(t *testing.T) {
			var rows int
			if err := l.connect(t).QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&rows); err != nil || rows != 1 {
				t.Errorf("%s has %d rows, %v; want 1", table, rows, err)
			}
		})
	}
	known, err := l.Known(t.Context(), []workload.ID{record.ID})
	if err != nil || known[record.ID].Phase != workload.Succeeded {
		t.Errorf("of the finished workload is known %+v, %v", known, err)
	}
	answer, err := l.Workloads(t.Context(), query.WorkloadsRequest{Name: "gang"})
	if err != nil || len(answer.Workloads) != 2 || answer.Workloads[0].ID != record.ID {
		t.Errorf("listed are %+v, %v; want the finished one, then the live one", answer.Workloads, err)
	}
}

func TestFreedAndReservedAgainInOneCommit(t *testing.T) {
	t.Parallel()
	l := open(t)
	first := admitted(1, "gang", 2, 2, 1000)
	l.commit(t, first)
	record := first.Added[0].Record
	record.Attempt = 2
	next := state.Changes{Updated: []workload.Record{record}, Freed: []workload.ID{record.ID}, Reserved: first.Reserved}
	next.Reserved[0].Attempt = 2
	l.commit(t, next)
	if got := l.reserved(t, "cpu"); got != 2000 {
		t.Errorf("%d millicores are reserved, want 2000", got)
	}
}

func TestPartitionsAreMadeAheadAndDroppedWhenOld(t *testing.T) {
	t.Parallel()
	l := open(t)
	conn := l.connect(t)
	keep := func(history, archive string) (made, dropped int) {
		t.Helper()
		err := conn.QueryRow(t.Context(), `SELECT made, dropped FROM keep_partitions($1, 3, $2::interval, $3::interval)`,
			l.term.Epoch, history, archive).Scan(&made, &dropped)
		if err != nil {
			t.Fatal(err)
		}
		return made, dropped
	}
	if made, dropped := keep("30 days", "30 days"); made != 8 || dropped != 0 {
		t.Errorf("made %d and dropped %d partitions, want 8 and 0", made, dropped)
	}
	if made, dropped := keep("30 days", "30 days"); made != 0 || dropped != 0 {
		t.Errorf("the second time made %d and dropped %d partitions, want none", made, dropped)
	}
	// What is older than minus two days: today's and tomorrow's end before.
	if _, dropped := keep("-3 days", "30 days"); dropped != 3 && dropped != 2 {
		t.Errorf("dropped %d partitions of history, want those that are old", dropped)
	}
	if _, err := conn.Exec(t.Context(), `SELECT keep_partitions($1, 3, '1 day', '1 day')`, l.term.Epoch-1); err == nil {
		t.Error("partitions were kept by a replaced leader")
	}
}
