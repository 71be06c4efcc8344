package postgres

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// initialise creates the data directory with one role that needs a password, because
// other users of this machine can reach the port.
func (s *Server) initialise(ctx context.Context, binaries string, options Options) error {
	passwordFile := filepath.Join(s.home.Path, "password")
	if err := s.write(passwordFile, s.password); err != nil {
		return fmt.Errorf("write the password for Postgres: %w", err)
	}
	// --no-sync saves time: this server does not outlive a crash of the machine.
	cmd := exec.CommandContext(ctx, filepath.Join(binaries, "initdb"), "--pgdata", s.dataDir(),
		"--username", superuser, "--pwfile", passwordFile, "--auth", "scram-sha-256",
		"--encoding", "UTF8", "--locale", "C", "--no-sync")
	cmd.Dir, cmd.Env = s.home.Path, environment()
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.home.account}
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run %s: %w: %s", cmd.Path, err, strings.TrimSpace(output.String()))
	}
	if err := s.write(filepath.Join(s.dataDir(), "postgresql.auto.conf"), configuration(options)); err != nil {
		return fmt.Errorf("configure Postgres: %w", err)
	}
	if options.TLS != nil {
		return s.encrypt(*options.TLS)
	}
	return nil
}

// encrypt installs the server's certificate under Postgres' default names, and makes it
// refuse connections without encryption.
func (s *Server) encrypt(files TLS) error {
	for name, file := range map[string]string{"server.crt": files.Certificate, "server.key": files.Key} {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read the certificate for Postgres: %w", err)
		}
		if err := s.write(filepath.Join(s.dataDir(), name), string(content)); err != nil {
			return fmt.Errorf("write the certificate of Postgres: %w", err)
		}
	}
	if err := s.write(filepath.Join(s.dataDir(), "pg_hba.conf"), "hostssl all all 127.0.0.1/32 scram-sha-256\n"); err != nil {
		return fmt.Errorf("write pg_hba.conf of Postgres: %w", err)
	}
	return nil
}

// Settings returns the settings of a server for a laptop, by name: many short connections,
// little memory. Without fsync they trade durability for speed.
func Settings(fsync bool) map[string]string {
	settings := map[string]string{
		"max_connections": "300",
		"shared_buffers":  "64MB",
		"max_wal_size":    "512MB",
		"jit":             "off",
		"huge_pages":      "off",
		"timezone":        "UTC",
		"log_timezone":    "UTC",
	}
	if !fsync {
		settings["fsync"] = "off"
		settings["full_page_writes"] = "off"
		settings["synchronous_commit"] = "off"
	}
	return settings
}

// configuration returns the content of the file of settings.
func configuration(options Options) string {
	settings := map[string]string{"listen_addresses": "'127.0.0.1'", "unix_socket_directories": "''"}
	for name, value := range Settings(!options.NoFsync) {
		settings[name] = "'" + value + "'"
	}
	if options.TLS != nil {
		settings["ssl"] = "on"
	}
	maps.Copy(settings, options.Settings)
	var lines strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&lines, "%s = %s\n", name, settings[name])
	}
	return lines.String()
}

// write creates a file that only the server's account may read.
func (s *Server) write(path, content string) error {
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		return err
	}
	if s.home.account == nil {
		return nil
	}
	return os.Chown(path, int(s.home.account.Uid), int(s.home.account.Gid))
}
