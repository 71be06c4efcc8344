package security

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"muster.dev/muster/deploy/certificates"
	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/local/natsserver"
	"muster.dev/muster/pkg/local/postgres"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/pkg/testkit/pgtest"
	queuemanager "muster.dev/muster/services/queue-manager/app"
)

// encrypted starts a Postgres that takes encrypted connections only, and returns
// the migrated database's URLs: of its owner, and of a login of the service's role.
func encrypted(t *testing.T) (owner, login, ca string) {
	t.Helper()
	dir := t.TempDir()
	if err := certificates.Ensure(dir, certificates.Wanted{Name: "postgres", Hosts: []string{"127.0.0.1"}}); err != nil {
		t.Fatal(err)
	}
	server := pgtest.Local(t, postgres.Options{NoFsync: true, TLS: &postgres.TLS{
		CA: certificates.CA(dir), Certificate: certificates.Certificate(dir, "postgres"), Key: certificates.Key(dir, "postgres"),
	}})
	var err error
	if owner, err = server.CreateDatabase(t.Context(), "muster", ""); err != nil {
		t.Fatal(err)
	}
	if err := queuemanager.Migrate(t.Context(), owner, zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	if login, _, err = postgres.Login(t.Context(), owner, queuemanager.DatabaseRole); err != nil {
		t.Fatal(err)
	}
	return owner, login, certificates.CA(dir)
}

// lead runs queue-manager until it leads, and returns what it warned of.
func lead(t *testing.T, databaseURL string) *observer.ObservedLogs {
	t.Helper()
	server, err := natsserver.Start(t.TempDir(), -1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	config := &queuemanager.Config{NATS: bus.Settings{URL: server.URL()}, DatabaseURL: databaseURL}
	if err := config.Validate(); err != nil {
		t.Fatal(err)
	}
	core, logs := observer.New(zapcore.WarnLevel)
	runtime := service.NewRuntime(zap.New(core), "queue-manager")
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- queuemanager.Run(ctx, config, runtime) }()
	t.Cleanup(func() { cancel(); <-ended })
	ready, done := context.WithTimeout(t.Context(), patience)
	defer done()
	if err := runtime.Health.WaitReady(ready); err != nil {
		t.Fatal(err)
	}
	return logs
}

// queue-manager leads over encrypted connections, as a login that is no superuser
// and owns nothing; every session of it is so.
func TestQueueManagerRunsEncryptedWithItsOwnRole(t *testing.T) {
	t.Parallel()
	owner, login, _ := encrypted(t)
	if warnings := lead(t, login).FilterMessage("Postgres is not set up safely").All(); len(warnings) > 0 {
		t.Errorf("it warns: %v", warnings)
	}
	conn, err := pgx.Connect(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	var sessions, plain, mighty int
	err = conn.QueryRow(t.Context(), `
		SELECT count(*), count(*) FILTER (WHERE NOT s.ssl),
			count(*) FILTER (WHERE r.rolsuper OR r.rolcreatedb OR r.rolcreaterole OR r.rolbypassrls OR r.rolreplication
				OR EXISTS (SELECT FROM pg_class c WHERE c.relowner = r.oid))
		FROM pg_stat_activity a JOIN pg_stat_ssl s USING (pid) JOIN pg_roles r ON r.oid = a.usesysid
		WHERE a.application_name = 'muster-queue-manager'`).Scan(&sessions, &plain, &mighty)
	if err != nil || sessions == 0 || plain > 0 || mighty > 0 {
		t.Errorf("%d sessions, of them %d not encrypted and %d with too many rights, %v; want some, 0 and 0", sessions, plain, mighty, err)
	}
}

// What the documentation says of sslmode holds.
func TestSSLModes(t *testing.T) {
	t.Parallel()
	_, login, ca := encrypted(t)
	elsewhere := t.TempDir()
	if err := certificates.Ensure(elsewhere); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		host, query string
		fault       string // empty: it connects
	}{
		"verify-full":                        {"127.0.0.1", "sslmode=verify-full&sslrootcert=" + ca, ""},
		"verify-full, another name":          {"localhost", "sslmode=verify-full&sslrootcert=" + ca, "localhost"},
		"verify-full, another authority":     {"127.0.0.1", "sslmode=verify-full&sslrootcert=" + certificates.CA(elsewhere), "unknown authority"},
		"verify-full, the system's":          {"127.0.0.1", "sslmode=verify-full", "unknown authority"},
		"verify-ca, another name":            {"localhost", "sslmode=verify-ca&sslrootcert=" + ca, ""},
		"require takes any certificate":      {"127.0.0.1", "sslmode=require", ""},
		"disable is refused by this server":  {"127.0.0.1", "sslmode=disable", "no encryption"},
		"verify-full, a file that is no one": {"127.0.0.1", "sslmode=verify-full&sslrootcert=/nowhere", "/nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			parsed, err := url.Parse(login)
			if err != nil {
				t.Fatal(err)
			}
			parsed.Host, parsed.RawQuery = test.host+":"+parsed.Port(), test.query
			conn, err := pgx.Connect(t.Context(), parsed.String())
			if err == nil {
				_ = conn.Close(t.Context())
			}
			if test.fault == "" && err != nil || test.fault != "" && (err == nil || !strings.Contains(err.Error(), test.fault)) {
				t.Errorf("got %v, want %q", err, test.fault)
			}
			if password, _ := parsed.User.Password(); err != nil && strings.Contains(err.Error(), password) {
				t.Errorf("the error tells the password: %v", err)
			}
		})
	}
}

// A login that may do too much is warned of.
func TestATooMightyLoginIsWarnedOf(t *testing.T) {
	t.Parallel()
	warnings := lead(t, databases.Database(t)).FilterMessage("Postgres is not set up safely").All()
	if len(warnings) != 1 || !strings.Contains(warnings[0].ContextMap()["problem"].(string), "superuser") {
		t.Errorf("it warns of %v, want of the superuser", warnings)
	}
}

// Migrations run as a role that owns its database and is nothing else, where the
// two roles exist.
func TestMigrationsNeedNoSuperuser(t *testing.T) {
	t.Parallel()
	admin := databases.Empty(t)
	owner, _, err := postgres.Login(t.Context(), admin, "muster_reader") // it goes with the server: it owns a database
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := url.Parse(owner)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), admin)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if _, err := conn.Exec(t.Context(), "ALTER DATABASE "+strings.TrimPrefix(parsed.Path, "/")+" OWNER TO "+parsed.User.Username()); err != nil {
		t.Fatal(err)
	}
	if err := queuemanager.Migrate(t.Context(), owner, zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	var superuser bool
	if err := conn.QueryRow(t.Context(), `SELECT r.rolsuper FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner WHERE c.oid = 'workloads'::regclass`).Scan(&superuser); err != nil || superuser {
		t.Errorf("the tables are a superuser's: %v, %v", superuser, err)
	}
}
