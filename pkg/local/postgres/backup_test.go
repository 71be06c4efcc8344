package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/local/postgres"
)

// TestARestoredServerIsOlder: a restored server has the same address, the commits before
// the backup, and none after it.
func TestARestoredServerIsOlder(t *testing.T) {
	t.Parallel()
	server, err := postgres.Start(t.Context(), postgres.Options{Dir: enterableDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	if err := server.Restore(t.Context()); err == nil {
		t.Fatal("a server was restored without a backup")
	}
	url := server.URL()
	run := func(statement string) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(context.Background()) }()
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	run("CREATE TABLE kept (n int); INSERT INTO kept VALUES (1)")
	for _, each := range []string{"first", "second"} { // a restored server can be backed up, too
		if err := server.BackUp(t.Context()); err != nil {
			t.Fatalf("%s backup: %v", each, err)
		}
		run("INSERT INTO kept VALUES (2)")
		if err := server.Restore(t.Context()); err != nil {
			t.Fatalf("%s restore: %v", each, err)
		}
		if got := query[int](t, url, "SELECT max(n) FROM kept"); got != 1 {
			t.Errorf("after the %s restore the last row is %d, want 1", each, got)
		}
	}
}
