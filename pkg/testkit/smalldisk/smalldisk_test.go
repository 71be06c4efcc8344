package smalldisk

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// recorder keeps how a test was ended; the runtime's Goexit is not needed for that.
type recorder struct {
	testing.TB
	failed, skipped string
}

func (r *recorder) Helper()                           {}
func (r *recorder) Fatalf(format string, args ...any) { r.failed = format }
func (r *recorder) Skipf(format string, args ...any)  { r.skipped = format }

func TestATestThatMayNotMountFailsWhereItMustRun(t *testing.T) {
	t.Parallel()
	for name, required := range map[string]bool{"required": true, "not required": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &recorder{TB: t}
			refuse(r, required, errors.New("operation not permitted"))
			if (r.failed != "") != required || (r.skipped != "") == required {
				t.Errorf("required: %t; failed %q, skipped %q", required, r.failed, r.skipped)
			}
		})
	}
}

// The file system is full when it has what it holds, and has room again when it grows.
func TestItIsFullAndGrows(t *testing.T) {
	t.Parallel()
	dir := Mount(t, 1)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, make([]byte, 2<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("two megabytes on one: %v", err)
	}
	Grow(t, dir, 4)
	if err := os.WriteFile(file, make([]byte, 2<<20), 0o600); err != nil {
		t.Errorf("two megabytes on four: %v", err)
	}
}
