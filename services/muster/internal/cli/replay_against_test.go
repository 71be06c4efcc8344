package cli

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestAnotherProgramPlaysTheHistory: replay --against PROGRAM has the program play, tells it the
// database without showing it to others, and says what is wrong with one that cannot.
func TestAnotherProgramPlaysTheHistory(t *testing.T) {
	t.Parallel()
	const url = "postgres://muster:secret@db/muster"
	since := time.Date(2026, 3, 1, 12, 0, 0, 500, time.UTC)
	for name, c := range map[string]struct{ script, wrong string }{
		"plays": {script: `
[ "$*" = "replay --play --output json --since 2026-03-01T12:00:00.0000005Z" ] || { echo "called with $*" >&2; exit 4; }
[ "$` + databaseURLVariable + `" = "` + url + `" ] || exit 5
echo '{"decisions": 7}'`},
		"knows no --play":           {"exit 3", "exit status 3; it must have replay --play"},
		"prints something else":     {"echo Muster 1", "read its answer: invalid character 'M'"},
		"prints nothing":            {"exit 0", "read its answer: unexpected end of JSON input"},
		"is of another system":      {"\x7fELF", "it must have replay --play"},
		"prints numbers of no sort": {`echo '{"decisions": "many"}'`, "read its answer: json: cannot unmarshal string"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "muster")
			syscall.ForkLock.RLock() // a child of another test would have the file open, too
			err := os.WriteFile(path, []byte("#!/bin/sh\n"+c.script+"\n"), 0o700)
			syscall.ForkLock.RUnlock()
			if err != nil {
				t.Fatal(err)
			}
			played, err := playProgram(t.Context(), path, url, since)
			if c.wrong == "" {
				if err != nil || played.Decisions != 7 {
					t.Errorf("played is %+v, %v; want 7 decisions", played, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.wrong) || strings.Contains(err.Error(), "secret") {
				t.Errorf("the error is %v, want %q in it, and no password", err, c.wrong)
			}
		})
	}
}
