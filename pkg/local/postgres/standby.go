package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrEncrypted is returned by Standby for a server with TLS, whose pg_hba.conf allows no
// replication.
var ErrEncrypted = errors.New("a server with TLS has no standbys here")

// Standby starts a standby from a base backup of this server, with the same settings. It
// returns when the standby accepts connections, which may only read. Replication is
// asynchronous until Synchronous.
func (s *Server) Standby(ctx context.Context) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if !strings.Contains(s.query, "sslmode=disable") {
		return nil, ErrEncrypted
	}
	binaries, err := findBinaries(ctx)
	if err != nil {
		return nil, err
	}
	home, err := newHome(s.dir, s.home.account)
	if err != nil {
		return nil, err
	}
	standby := &Server{home: home, password: s.password, query: s.query, dir: s.dir}
	if err = standby.copyFrom(ctx, binaries, s); err == nil {
		err = standby.launch(ctx, binaries)
	}
	if err != nil {
		home.Remove()
		return nil, err
	}
	return standby, nil
}

// name returns a standby's name in synchronous_standby_names.
func (s *Server) name() string {
	return strings.ToLower(strings.ReplaceAll(filepath.Base(s.home.Path), "-", "_"))
}

// copyFrom creates the data directory from a base backup of the primary.
func (s *Server) copyFrom(ctx context.Context, binaries string, primary *Server) error {
	from, err := url.Parse(primary.URL())
	if err != nil {
		return fmt.Errorf("read the URL of the primary: %w", err)
	}
	query := from.Query()
	query.Set("application_name", s.name())
	from.Path, from.RawQuery = "/", query.Encode()
	return s.baseBackup(ctx, binaries, "--dbname", from.String(), "--pgdata", s.dataDir(), "--write-recovery-conf")
}

// Synchronous makes every commit of this server wait until the standby has flushed it,
// and returns when replication is synchronous.
func (s *Server) Synchronous(ctx context.Context, standby *Server) error {
	name := pgx.Identifier{standby.name()}.Sanitize()
	if err := s.configure(ctx, "synchronous_standby_names", "FIRST 1 ("+name+")"); err != nil {
		return err
	}
	return s.await(ctx, "the standby is synchronous", fmt.Sprintf(
		`SELECT EXISTS (SELECT FROM pg_stat_replication WHERE application_name = '%s' AND sync_state = 'sync')`, standby.name()))
}

// Detach ends replication to a standby, and returns when it has ended: later commits of
// the primary are lost when the standby is promoted.
func (s *Server) Detach(ctx context.Context) error {
	if err := s.configure(ctx, "primary_conninfo", ""); err != nil {
		return err
	}
	return s.await(ctx, "nothing is received", `SELECT NOT EXISTS (SELECT FROM pg_stat_wal_receiver)`)
}

// Promote makes a standby a primary.
func (s *Server) Promote(ctx context.Context) error {
	if err := execute(ctx, s.URL(), `SELECT pg_promote(false)`); err != nil {
		return fmt.Errorf("promote the standby: %w", err)
	}
	return s.await(ctx, "it is a primary", `SELECT NOT pg_is_in_recovery()`)
}

// Kill ends all processes of the server at once, like the loss of its machine, except
// that the kernel still writes its buffers to the disk. A server that has ended stays ended.
func (s *Server) Kill() {
	select {
	case <-s.process.exited: // another process may have its number
		return
	default:
	}
	postmaster := s.process.cmd.Process
	_ = postmaster.Signal(syscall.SIGSTOP) // so that it starts no more processes; it may have ended
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", postmaster.Pid))
	_ = postmaster.Kill()
	for _, child := range strings.Fields(string(children)) {
		var pid int
		if _, err := fmt.Sscan(child, &pid); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	<-s.process.exited
}

// configure changes a setting that takes effect without a restart.
func (s *Server) configure(ctx context.Context, setting, value string) error {
	statement := fmt.Sprintf(`ALTER SYSTEM SET %s = '%s'`, setting, strings.ReplaceAll(value, "'", "''"))
	for _, each := range []string{statement, `SELECT pg_reload_conf()`} {
		if err := execute(ctx, s.URL(), each); err != nil {
			return fmt.Errorf("set %s to %q: %w", setting, value, err)
		}
	}
	return nil
}

// await repeats the query until it returns true.
func (s *Server) await(ctx context.Context, what, question string) error {
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return fmt.Errorf("wait until %s: %w", what, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	for {
		var met bool
		if err := conn.QueryRow(ctx, question).Scan(&met); err != nil || met {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w; the log of the server: %s", what, ctx.Err(), s.logTail())
		case <-ticker.C:
		}
	}
}

// AnyOf returns the URL of a database on several servers; clients connect to the first
// that is writable.
func AnyOf(databaseURL string, others ...*Server) (string, error) {
	parsed, err := url.Parse(databaseURL)
	if err != nil {
		return "", errors.New("the database URL cannot be read") // it has a password
	}
	for _, other := range others {
		parsed.Host += fmt.Sprintf(",127.0.0.1:%d", other.port)
	}
	query := parsed.Query()
	query.Set("target_session_attrs", "read-write")
	parsed.RawQuery = query.Encode()
	return parsed.String(), nil
}
