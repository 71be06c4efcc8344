package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// minVersion is the oldest major version of Postgres that Muster runs on.
const minVersion = 15

// ErrNotInstalled means that this machine has no usable Postgres.
var ErrNotInstalled = errors.New("Postgres is not installed: on Debian or Ubuntu `apt-get install postgresql`, " +
	"on Fedora `dnf install postgresql-server`; want version 15 or later")

// debianBinaries are Debian's directories of each version's binaries, outside of PATH.
const debianBinaries = "/usr/lib/postgresql/*/bin"

// Installed returns the directory of the binaries that Start would use, or an error that
// wraps ErrNotInstalled.
func Installed(ctx context.Context) (string, error) { return findBinaries(ctx) }

func findBinaries(ctx context.Context) (string, error) { return newest(ctx, candidates(ctx)) }

// newest returns the directory with the newest server.
func newest(ctx context.Context, dirs []string) (string, error) {
	type installation struct {
		dir     string
		version int
	}
	var found []installation
	var tooOld []string
	for _, dir := range dirs {
		version, err := serverVersion(ctx, dir)
		switch {
		case err != nil: // no server here; the next candidate may have one
		case version < minVersion:
			tooOld = append(tooOld, fmt.Sprintf("version %d in %s", version, dir))
		default:
			found = append(found, installation{dir, version})
		}
	}
	if len(found) == 0 && len(tooOld) > 0 {
		return "", fmt.Errorf("%w (found only %s)", ErrNotInstalled, strings.Join(tooOld, ", "))
	}
	if len(found) == 0 {
		return "", ErrNotInstalled
	}
	return slices.MaxFunc(found, func(a, b installation) int { return cmp.Compare(a.version, b.version) }).dir, nil
}

// candidates lists directories that may have the server's binaries.
func candidates(ctx context.Context) []string {
	dirs, _ := filepath.Glob(debianBinaries) // the pattern is well formed
	if printed, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(printed)))
	}
	for _, name := range []string{"initdb", "postgres"} {
		if path, err := exec.LookPath(name); err == nil {
			if resolved, err := filepath.EvalSymlinks(path); err == nil {
				dirs = append(dirs, filepath.Dir(resolved))
			}
		}
	}
	return dirs
}

var versionPrinted = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

// serverVersion returns the major version of the server in dir.
func serverVersion(ctx context.Context, dir string) (int, error) {
	if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
		return 0, err
	}
	path := filepath.Join(dir, "postgres")
	printed, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return 0, fmt.Errorf("read the version of %s: %w", path, err)
	}
	match := versionPrinted.FindSubmatch(printed)
	if match == nil {
		return 0, fmt.Errorf("%s printed no version: %q", path, printed)
	}
	return strconv.Atoi(string(match[1]))
}
