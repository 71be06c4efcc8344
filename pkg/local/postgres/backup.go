package postgres

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// backupDir has the backup until it is restored.
func (s *Server) backupDir() string { return filepath.Join(s.home.Path, "backup") }

// BackUp makes a physical backup of the running server with pg_basebackup, replacing the
// last one. It has every earlier commit, and may have concurrent ones. It fails for a
// server with TLS.
func (s *Server) BackUp(ctx context.Context) error {
	binaries, err := findBinaries(ctx)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(s.backupDir()); err != nil {
		return fmt.Errorf("remove the last backup of Postgres: %w", err)
	}
	return s.baseBackup(ctx, binaries, "--pgdata", s.backupDir(), "--host", "127.0.0.1", "--port", strconv.Itoa(s.port),
		"--username", superuser, "--wal-method", "stream")
}

// baseBackup runs pg_basebackup under the server's account, without syncing the files.
func (s *Server) baseBackup(ctx context.Context, binaries string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(binaries, "pg_basebackup"), append(args, "--checkpoint", "fast", "--no-sync")...)
	cmd.Dir, cmd.Env = s.home.Path, append(environment(), "PGPASSWORD="+s.password)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.home.account}
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("run %s: %w: %s", cmd.Path, err, bytes.TrimSpace(output))
	}
	return nil
}

// Restore ends the server at once, replaces its data with the last backup, and starts it
// on the same port. Commits since the backup are lost.
func (s *Server) Restore(ctx context.Context) error {
	if _, err := os.Stat(s.backupDir()); err != nil {
		return fmt.Errorf("restore Postgres: there is no backup: %w", err)
	}
	s.Crash()
	if err := os.RemoveAll(s.dataDir()); err != nil {
		return fmt.Errorf("remove the data of Postgres: %w", err)
	}
	if err := os.Rename(s.backupDir(), s.dataDir()); err != nil {
		return fmt.Errorf("move the backup of Postgres to its data directory: %w", err)
	}
	return s.Restart(ctx)
}
