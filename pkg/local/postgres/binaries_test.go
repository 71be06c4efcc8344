package postgres

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// installation creates a directory with programs that print the version.
func installation(t *testing.T, version int) string {
	t.Helper()
	dir := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\necho 'postgres (PostgreSQL) %d.4 (Debian)'\n", version)
	for _, name := range []string{"initdb", "postgres"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestNewest(t *testing.T) {
	t.Parallel()
	old, fifteen, seventeen, empty := installation(t, 14), installation(t, 15), installation(t, 17), t.TempDir()
	got, err := newest(t.Context(), []string{empty, fifteen, seventeen, old})
	if err != nil || got != seventeen {
		t.Errorf("newest of versions 15, 17 and 14: %q, %v, want %q", got, err, seventeen)
	}

	_, err = newest(t.Context(), []string{empty})
	if !errors.Is(err, ErrNotInstalled) || !strings.Contains(err.Error(), "apt-get install postgresql") {
		t.Errorf("no installation: %v, want ErrNotInstalled and what to install", err)
	}
	_, err = newest(t.Context(), []string{old})
	if !errors.Is(err, ErrNotInstalled) || !strings.Contains(err.Error(), "version 14 in "+old) {
		t.Errorf("too old: %v, want ErrNotInstalled and what was found", err)
	}
}
