// Package pgtest gives each test its own Postgres database, on a real server. It is not for
// programs: only tests may import it.
//
// The server is the one that MUSTER_TEST_DATABASE_URL names, or a throwaway one from the
// distribution's binaries, one for each test binary. Without either, tests are skipped,
// or fail with MUSTER_REQUIRE_SERVICES=1, as in CI.
package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/local/postgres"
	"muster.dev/muster/pkg/testkit/tally"
)

// Server makes databases from one migrated template.
type Server struct {
	admin    string // URL of a role that may create databases
	template string
	missing  error // why there is no server
	here     bool  // whether it runs on this machine
	migrate  func(ctx context.Context, url string) error
	stop     func()
}

// templateTimeout bounds the start of the server and the creation of the template.
const templateTimeout = 2 * time.Minute

// Run runs the tests of a package, in its TestMain, and returns the exit code. They find in s
// a server whose databases have the schema that migrate creates.
func Run(m *testing.M, s **Server, migrate func(ctx context.Context, url string) error) int {
	server, err := Start(migrate)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer server.Stop()
	*s = server
	return m.Run()
}

// Start returns a server whose databases have the schema that migrate creates. Database
// reports a missing Postgres, so that other tests can run. Stop ends it.
func Start(migrate func(ctx context.Context, url string) error) (*Server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), templateTimeout)
	defer cancel()
	s := &Server{admin: os.Getenv("MUSTER_TEST_DATABASE_URL"), migrate: migrate, stop: func() {}}
	if s.here = s.admin == ""; s.here {
		local, err := postgres.Start(ctx, postgres.Options{NoFsync: true})
		if errors.Is(err, postgres.ErrNotInstalled) {
			return &Server{missing: err, here: true, stop: func() {}}, nil
		}
		if err != nil {
			return nil, err
		}
		s.admin, s.stop = local.URL(), local.Stop
	}
	if err := s.makeTemplate(ctx); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

func (s *Server) makeTemplate(ctx context.Context) error {
	s.template = "template_" + strings.ToLower(rand.Text())
	if err := s.create(ctx, s.template, "template1"); err != nil {
		return err
	}
	if err := s.migrate(ctx, s.url(s.template)); err != nil {
		return fmt.Errorf("migrate the template database: %w", err)
	}
	return nil
}

// Here returns a server that runs on this machine, for a test that gives it files of this
// machine, or applies programs of the same version as the server to it. It is s itself,
// unless MUSTER_TEST_DATABASE_URL names that; then it ends with the test.
func (s *Server) Here(t testing.TB) *Server {
	t.Helper()
	if s.here {
		return s
	}
	server := Local(t, postgres.Options{NoFsync: true})
	own := &Server{admin: server.URL(), here: true, migrate: s.migrate, stop: func() {}}
	if err := own.makeTemplate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return own
}

// Stop removes the template and stops the server if it was started here.
func (s *Server) Stop() {
	if s.template != "" {
		ctx, cancel := context.WithTimeout(context.Background(), templateTimeout)
		defer cancel()
		_ = s.exec(ctx, "DROP DATABASE IF EXISTS "+s.template+" WITH (FORCE)") // the server may be gone
	}
	s.stop()
}

// Local starts a separate server, which the test may kill, and stops it after the test.
// Without the binaries the test is skipped, or fails if services are required.
func Local(t testing.TB, options postgres.Options) *postgres.Server {
	t.Helper()
	server, err := postgres.Start(t.Context(), options)
	if errors.Is(err, postgres.ErrNotInstalled) && os.Getenv("MUSTER_REQUIRE_SERVICES") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	if err := tally.Add(tally.Postgres, tally.Own); err != nil {
		t.Fatal(err)
	}
	return server
}

// Database returns the URL of a new database with the schema, dropped after the
// test.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	return s.database(t, s.template)
}

// Empty returns the URL of a new database without any schema, dropped after the
// test.
func (s *Server) Empty(t testing.TB) string {
	t.Helper()
	return s.database(t, "template1")
}

// As returns the URL of the same database for a login that is a member of the role and of
// no other, dropped after the test.
func (s *Server) As(t testing.TB, database, role string) string {
	t.Helper()
	login, remove, err := postgres.Login(t.Context(), database, role)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := remove(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return login
}

func (s *Server) database(t testing.TB, template string) string {
	t.Helper()
	if s.missing != nil {
		if os.Getenv("MUSTER_REQUIRE_SERVICES") != "" {
			t.Fatalf("Postgres is required: %v", s.missing)
		}
		t.Skipf("no Postgres: %v", s.missing)
	}
	if !s.here {
		if err := tally.Add(tally.Postgres, tally.Shared); err != nil {
			t.Fatal(err)
		}
	}
	name := "test_" + strings.ToLower(rand.Text())
	if err := s.create(t.Context(), name, template); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.exec(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Errorf("drop test database: %v", err)
		}
	})
	return s.url(name)
}

func (s *Server) create(ctx context.Context, name, template string) error {
	// Names are made here, of letters and digits; Postgres takes no parameters.
	return s.exec(ctx, fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s", name, template))
}

func (s *Server) exec(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, s.admin)
	if err != nil {
		return fmt.Errorf("connect to the test server: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

func (s *Server) url(database string) string {
	parsed, err := url.Parse(s.admin)
	if err != nil {
		return s.admin // connecting reports what is wrong with it
	}
	parsed.Path = "/" + database
	return parsed.String()
}
