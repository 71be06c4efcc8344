package pgtest_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/local/postgres"
	"muster.dev/muster/pkg/testkit/pgtest"
	"muster.dev/muster/pkg/testkit/tally"
)

// A test that needs a server of this machine has one, with the schema, when another is
// named; each kind is noted.
func TestHereIsAServerOfThisMachine(t *testing.T) {
	named := pgtest.Local(t, postgres.Options{NoFsync: true})
	notes := filepath.Join(t.TempDir(), "notes")
	t.Setenv(tally.EnvFile, notes)
	t.Setenv("MUSTER_TEST_DATABASE_URL", named.URL())
	server, err := pgtest.Start(makeTable)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	there, here := server.Database(t), server.Here(t)
	if here == server {
		t.Fatal("the server that is named is taken for one of this machine")
	}
	own := here.Database(t)
	if port(t, there) == port(t, own) {
		t.Errorf("%s and %s are of one server", there, own)
	}
	for _, url := range []string{there, own} {
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), "SELECT FROM made"); err != nil {
			t.Errorf("the schema at %s: %v", url, err)
		}
		_ = conn.Close(t.Context())
	}
	if again := here.Here(t); again != here {
		t.Error("a server of this machine has another one")
	}
	noted, err := os.ReadFile(notes)
	if err != nil || !strings.HasPrefix(string(noted), "postgres\tshared\t") || strings.Count(string(noted), "\n") != 2 {
		t.Errorf("noted is %q, %v; want a database of the named server, and a server", noted, err)
	}
}

func makeTable(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, "CREATE TABLE made ()")
	return err
}

func port(t *testing.T, url string) uint16 {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	return config.Port
}
