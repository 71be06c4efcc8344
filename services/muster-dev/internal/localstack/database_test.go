package localstack

import (
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/local/postgres"
	"muster.dev/muster/pkg/testkit/pgtest"
	queuemanager "muster.dev/muster/services/queue-manager/app"
)

func databases(t *testing.T, url string) int {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	var n int
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_database WHERE datname LIKE 'muster_%'").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestFreshDatabase(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "muster-dev-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // Postgres runs as another user when we are root
		t.Fatal(err)
	}
	server := pgtest.Local(t, postgres.Options{Dir: dir, NoFsync: true})

	fresh, drop, err := freshDatabase(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	if fresh == server.URL() || databases(t, fresh) != 1 {
		t.Errorf("fresh database %q: the server has %d of them, want 1", fresh, databases(t, server.URL()))
	}
	held, err := pgx.Connect(t.Context(), fresh) // a connection left open must not keep it
	if err != nil {
		t.Fatal(err)
	}
	drop()
	_ = held.Close(t.Context())
	if n := databases(t, server.URL()); n != 0 {
		t.Errorf("after the drop the server has %d of them, want none", n)
	}
}

func TestFreshDatabaseRefusesWhatIsNoURL(t *testing.T) {
	t.Parallel()
	_, _, err := freshDatabase(t.Context(), "host=127.0.0.1 password=secret")
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v, want an error that does not show the password", err)
	}
}

func TestTheServiceLogsInAsItsOwnRole(t *testing.T) {
	t.Parallel()
	server := pgtest.Local(t, postgres.Options{NoFsync: true})
	if err := queuemanager.Migrate(t.Context(), server.URL(), zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	service, _, err := postgres.Login(t.Context(), server.URL(), queuemanager.DatabaseRole)
	if err != nil {
		t.Fatal(err)
	}
	if err := execute(t.Context(), service, "SELECT epoch FROM leader FOR SHARE"); err != nil {
		t.Errorf("the service cannot do its work: %v", err)
	}
	if err := execute(t.Context(), service, "DROP TABLE workloads"); err == nil {
		t.Error("the service can drop tables")
	}
}
