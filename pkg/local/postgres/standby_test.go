package postgres_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/local/postgres"
)

// pair starts a primary with a table and a standby of it.
func pair(t *testing.T) (primary, standby *postgres.Server) {
	t.Helper()
	primary, err := postgres.Start(t.Context(), postgres.Options{Dir: enterableDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(primary.Stop)
	execute(t, primary.URL(), "CREATE TABLE kept (n int)")
	if standby, err = primary.Standby(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(standby.Stop)
	return primary, standby
}

func execute(t *testing.T, url, statement string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// TestASynchronousStandbyHasEverything: after the primary dies, its promoted synchronous
// standby has every commit, and clients of both find the writable one.
func TestASynchronousStandbyHasEverything(t *testing.T) {
	t.Parallel()
	primary, standby := pair(t)
	if err := primary.Synchronous(t.Context(), standby); err != nil {
		t.Fatal(err)
	}
	both, err := postgres.AnyOf(primary.URL(), standby)
	if err != nil {
		t.Fatal(err)
	}
	execute(t, both, "INSERT INTO kept VALUES (1)")
	primary.Kill()
	if err := standby.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	execute(t, both, "INSERT INTO kept VALUES (2)")
	if got := query[int](t, both, "SELECT sum(n)::int FROM kept"); got != 3 {
		t.Errorf("the promoted standby has a sum of %d, want 3", got)
	}
	if err := primary.Restart(t.Context()); err != nil { // without a standby it commits nothing
		t.Fatal(err)
	}
	if got := query[int](t, primary.URL(), "SELECT sum(n)::int FROM kept"); got != 1 {
		t.Errorf("the primary that came back has a sum of %d, want 1", got)
	}
}

// TestADetachedStandbyLags: a detached standby has no later commits.
func TestADetachedStandbyLags(t *testing.T) {
	t.Parallel()
	primary, standby := pair(t)
	if err := standby.Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	execute(t, primary.URL(), "INSERT INTO kept VALUES (1)")
	primary.Kill()
	if err := standby.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := query[int](t, standby.URL(), "SELECT count(*)::int FROM kept"); got != 0 {
		t.Errorf("the promoted standby has %d rows, want none", got)
	}
}

func TestAnEncryptedServerHasNoStandby(t *testing.T) {
	t.Parallel()
	server := &postgres.Server{}
	if _, err := server.Standby(t.Context()); !errors.Is(err, postgres.ErrEncrypted) {
		t.Errorf("%v, want ErrEncrypted", err)
	}
}
