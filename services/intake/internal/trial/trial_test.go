package trial

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/services/intake/internal/submission"
)

// TestMain runs a trial in the processes that this test starts. The first word of a
// message is its effect on the reader; the second is a file that counts the readers.
func TestMain(m *testing.M) {
	Main(func(_ ray.Operator, m submission.Message) {
		how, counted, _ := strings.Cut(string(m.Data), " ")
		before, _ := os.ReadFile(counted)
		if err := os.WriteFile(counted, append(before, '.'), 0o600); err != nil {
			panic(err)
		}
		switch {
		case how == "killed", how == "killed-once" && len(before) == 0:
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		case how == "too-large":
			os.Exit(4)
		case how == "panic":
			panic(how)
		}
	})
	os.Exit(m.Run())
}

// TestDeadlyMessages: a trial that a signal ended is repeated once, because the cause may be the
// machine and not the message. A trial that ended by itself is not.
func TestDeadlyMessages(t *testing.T) {
	t.Parallel()
	for how, c := range map[string]struct {
		died      bool
		processes int
	}{
		"good": {false, 1}, "killed-once": {false, 2}, "killed": {true, 2}, "too-large": {true, 1}, "panic": {true, 1},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			counted := filepath.Join(t.TempDir(), "processes")
			err := Run(t.Context(), ray.Shipped(), submission.Message{Data: []byte(how + " " + counted)})
			if errors.Is(err, ErrDied) != c.died || (err != nil) != c.died {
				t.Errorf("error %v, want that the process died: %t", err, c.died)
			}
			processes, err := os.ReadFile(counted)
			if err != nil || len(processes) != c.processes {
				t.Errorf("%d processes, %v; want %d", len(processes), err, c.processes)
			}
		})
	}
}
