package store_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"muster.dev/muster/services/queue-manager/internal/store"
)

// insufficientPrivilege is Postgres' SQLSTATE for what a role may not do.
const insufficientPrivilege = "42501"

func connectAs(t *testing.T, url, role string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), testServer.As(t, url, role))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

func refused(t *testing.T, conn *pgx.Conn, statement string) {
	t.Helper()
	_, err := conn.Exec(t.Context(), statement)
	var refusal *pgconn.PgError
	if !errors.As(err, &refusal) || refusal.Code != insufficientPrivilege {
		t.Errorf("%s: got %v, want SQLSTATE %s", statement, err, insufficientPrivilege)
	}
}

// The service's own role can neither change the schema nor rewrite what has
// happened, even as leader. That it can do its work is what all other tests of
// the service show, which run as it.
func TestTheServicesRoleOwnsNothing(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.commit(t, admitted(1, "gang", 1, 1, 100))
	conn := connectAs(t, l.url, "muster_queue_manager")
	if _, err := conn.Exec(t.Context(), `SELECT set_config('muster.epoch', '1', false)`); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		`CREATE TABLE mine (n int)`, `DROP TABLE workloads`, `ALTER TABLE workloads DISABLE TRIGGER ALL`, `TRUNCATE reservations`,
		`DROP TRIGGER no_overcommit ON node_resources`, `ALTER TABLE node_resources DROP CONSTRAINT node_resources_reserved_check`,
		`CREATE OR REPLACE FUNCTION assert_leader(mine bigint) RETURNS void LANGUAGE sql AS ''`,
		`DELETE FROM history`, `DELETE FROM decisions`, `UPDATE decisions SET outcome = ''`, `DELETE FROM bases`, `UPDATE history SET phase = 'failed'`, `DELETE FROM archive`, `UPDATE archive SET phase = 'failed'`,
		`INSERT INTO leader (epoch, holder, since) VALUES (9, 'me', now())`, `DELETE FROM leader`,
		`UPDATE manifests SET manifest = '{}'`, `UPDATE outbox SET subject = 'x'`, `UPDATE reservations SET node = 'x'`, `UPDATE commits SET epoch = 9`,
		`SET session_replication_role = replica`, `CREATE ROLE other`,
	} {
		t.Run(statement, func(t *testing.T) {
			refused(t, conn, statement)
		})
	}
	var owned int
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_class WHERE relowner = (SELECT oid FROM pg_roles WHERE rolname = current_user)
		OR relowner = 'muster_queue_manager'::regrole`).Scan(&owned); err != nil || owned != 0 {
		t.Errorf("the role owns %d relations, %v", owned, err)
	}
}

func TestTheReadersRoleOnlyReads(t *testing.T) {
	t.Parallel()
	l := open(t)
	conn := connectAs(t, l.url, "muster_reader")
	for _, table := range []string{"workloads", "archive", "history", "reservations", "queues", "nodes", "quota_usage"} {
		t.Run(table, func(t *testing.T) {
			if _, err := conn.Exec(t.Context(), `SELECT * FROM `+table); err != nil {
				t.Errorf("read %s: %v", table, err)
			}
			for _, statement := range []string{`DELETE FROM `, `TRUNCATE `, `DROP TABLE `} {
				t.Run(strings.TrimSpace(statement), func(t *testing.T) {
					refused(t, conn, statement+table)
				})
			}
		})
	}
	for _, statement := range []string{
		`SELECT * FROM manifests`, `SELECT * FROM outbox`, `SELECT * FROM decisions`, `SELECT assert_leader(1)`, `UPDATE leader SET epoch = 9`, `SELECT keep_partitions(1, 1, '1 day', '1 day')`,
	} {
		t.Run(statement, func(t *testing.T) {
			refused(t, conn, statement)
		})
	}
}

// A message that NATS refuses is kept once, by the leader, with the rights that it has.
func TestAnUndeliveredMessageIsKeptOnce(t *testing.T) {
	t.Parallel()
	l := open(t)
	letter := store.Outgoing{EventID: "dead/1", Subject: "muster.dead.q", Message: []byte("what it said")}
	for range 2 {
		if err := l.KeepUndelivered(t.Context(), l.term.Epoch, letter, "lost"); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.KeepUndelivered(t.Context(), l.term.Epoch-1, letter, "lost"); !errors.Is(err, store.ErrFenced) {
		t.Errorf("an old leader keeps it with %v, want ErrFenced", err)
	}
	conn := connectAs(t, l.url, "muster_queue_manager")
	var rows int
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM undelivered WHERE event_id = 'dead/1' AND reason = 'lost'`).Scan(&rows); err != nil || rows != 1 {
		t.Errorf("%d rows, %v, want one", rows, err)
	}
	if _, err := conn.Exec(t.Context(), `SELECT nextval(pg_get_serial_sequence('outbox', 'seq'))`); err != nil {
		t.Errorf("the role cannot number the message: %v", err)
	}
}
