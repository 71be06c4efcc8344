// Package postgres runs a throwaway Postgres server from the distribution's binaries, for
// a laptop's stack and for tests. It is a durable server on a loopback port, and leaves
// nothing behind: it dies with the process that started it, and the next start removes
// its files.
//
// It is not for production, where Postgres runs separately, nor for Muster's schema.
package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// startTimeout bounds initdb and the wait for the server to take connections.
const startTimeout = time.Minute

// portAttempts is the number of ports to try, because another process may take a free one
// before the server binds it.
const portAttempts = 5

// superuser is the name of the only role.
const superuser = "muster"

// Options are the settings of a server. The zero value is a durable server below
// os.TempDir().
type Options struct {
	// Dir is the parent of the server's directory. If the process is root, the account
	// that runs Postgres must be able to enter it.
	Dir string
	// NoFsync trades durability for speed, for tests that do not depend on it.
	NoFsync bool
	// Settings are added verbatim to postgresql.conf, by name.
	Settings map[string]string
	// TLS makes the server take encrypted connections only; nil for plain ones.
	TLS *TLS
}

// TLS has paths of files: a certificate for 127.0.0.1, its key, and the authority that
// signed it.
type TLS struct {
	CA, Certificate, Key string
}

// Server is a running server.
type Server struct {
	home     *home
	process  *process
	port     int
	password string
	query    string // of its URLs
	dir      string // parent of its home and those of its standbys
}

// Start runs a new, empty server and returns when it accepts connections. The context
// bounds the start only; Stop ends the server. The error wraps ErrNotInstalled if this
// machine has no usable Postgres.
func Start(ctx context.Context, options Options) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	binaries, err := findBinaries(ctx)
	if err != nil {
		return nil, err
	}
	account, err := serverAccount()
	if err != nil {
		return nil, err
	}
	home, err := newHome(options.Dir, account)
	if err != nil {
		return nil, err
	}
	server := &Server{home: home, password: rand.Text(), query: "sslmode=disable", dir: options.Dir}
	if options.TLS != nil {
		server.query = "sslmode=verify-full&sslrootcert=" + url.QueryEscape(options.TLS.CA)
	}
	if err := server.initialise(ctx, binaries, options); err != nil {
		home.Remove()
		return nil, err
	}
	if err := server.launch(ctx, binaries); err != nil {
		home.Remove()
		return nil, err
	}
	return server, nil
}

// URL returns the URL of the database "postgres".
func (s *Server) URL() string { return s.DatabaseURL("postgres") }

// DatabaseURL returns the URL of a database.
func (s *Server) DatabaseURL(database string) string {
	return (&url.URL{
		Scheme: "postgres", User: url.UserPassword(superuser, s.password),
		Host: fmt.Sprintf("127.0.0.1:%d", s.port), Path: "/" + database, RawQuery: s.query,
	}).String()
}

// CreateDatabase creates a database and returns its URL. A template, unless empty, is the
// name of a database to copy; it must have no connections.
func (s *Server) CreateDatabase(ctx context.Context, name, template string) (string, error) {
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return "", fmt.Errorf("connect to create database %q: %w", name, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	statement := "CREATE DATABASE " + pgx.Identifier{name}.Sanitize()
	if template != "" {
		statement += " TEMPLATE " + pgx.Identifier{template}.Sanitize()
	}
	if _, err := conn.Exec(ctx, statement); err != nil {
		return "", fmt.Errorf("create database %q from template %q: %w", name, template, err)
	}
	return s.DatabaseURL(name), nil
}

// Exited is closed when the server process has ended, by Stop or by itself.
func (s *Server) Exited() <-chan struct{} { return s.process.exited }

// Stop shuts the server down, ends open connections, waits for it and removes its
// directory. It may be called more than once.
func (s *Server) Stop() {
	s.process.stop()
	s.home.Remove()
}

// LogFile returns the path of the server's log.
func (s *Server) LogFile() string { return filepath.Join(s.home.Path, "postgres.log") }

// dataDir returns Postgres' data directory.
func (s *Server) dataDir() string { return filepath.Join(s.home.Path, "data") }

// Crash ends the server without a checkpoint, as a failure does: every connection breaks,
// and the next start recovers from the write-ahead log.
func (s *Server) Crash() {
	_ = s.process.cmd.Process.Signal(syscall.SIGQUIT) // the process may have ended
	<-s.process.exited
}

// Restart starts a server that has ended, on the same port and data.
func (s *Server) Restart(ctx context.Context) error {
	binaries, err := findBinaries(ctx)
	if err != nil {
		return err
	}
	process, err := startProcess(s, binaries)
	if err != nil {
		return err
	}
	s.process = process
	return s.awaitReady(ctx)
}
