// Package scratch creates temporary directories that do not outlive their process: Remove
// deletes them, or, if the process died before that, the next New with the same prefix.
// It is not for lasting data.
package scratch

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// ownerFile is locked by the process that owns the directory; the kernel releases the
// lock when the process dies.
const ownerFile = ".owner"

// settleTime is the age below which the sweep skips a directory, because its owner may
// not have locked it yet.
const settleTime = 10 * time.Second

// Dir is a directory of this process.
type Dir struct {
	Path string
	lock *os.File
}

// New creates a directory below base whose name starts with prefix, and removes those
// with that prefix whose owners have died. An empty base is os.TempDir().
func New(base, prefix string) (*Dir, error) {
	if base == "" {
		base = os.TempDir()
	}
	sweep(base, prefix)
	path, err := os.MkdirTemp(base, prefix)
	if err != nil {
		return nil, fmt.Errorf("create a temporary directory %q: %w", prefix, err)
	}
	d := &Dir{Path: path}
	if d.lock, err = os.OpenFile(filepath.Join(path, ownerFile), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		d.Remove()
		return nil, fmt.Errorf("create the lock of temporary directory %q: %w", path, err)
	}
	if err := syscall.Flock(int(d.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		d.Remove()
		return nil, fmt.Errorf("lock temporary directory %q: %w", path, err)
	}
	return d, nil
}

// Remove deletes the directory. It returns no error, because a later New deletes the
// remains.
func (d *Dir) Remove() {
	_ = os.RemoveAll(d.Path)
	if d.lock != nil {
		_ = d.lock.Close()
	}
}

func sweep(base, prefix string) {
	entries, err := os.ReadDir(base)
	if err != nil {
		return // creating the directory will fail, too
	}
	for _, entry := range entries {
		path := filepath.Join(base, entry.Name())
		if len(entry.Name()) <= len(prefix) || entry.Name()[:len(prefix)] != prefix || !entry.IsDir() {
			continue
		}
		if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > settleTime && abandoned(path) {
			_ = os.RemoveAll(path) // the next sweep tries again
		}
	}
}

// abandoned reports whether no process holds the lock of a directory.
func abandoned(path string) bool {
	lock, err := os.Open(filepath.Join(path, ownerFile))
	if err != nil {
		return os.IsNotExist(err) // the owner died before it created the lock
	}
	defer func() { _ = lock.Close() }()
	return syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
