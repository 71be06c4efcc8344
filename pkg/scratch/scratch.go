// Package scratch makes directories that end with the process that made them:
// by Remove, or, when the process died before that, by the next New beside
// them. It is not for data that anybody wants to keep.
package scratch

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// ownerFile is locked by the process that owns the directory for as long as it
// lives; the kernel gives the lock up when the process dies, however it dies.
const ownerFile = ".owner"

// settleTime is how young a directory has to be for the sweep to leave it alone:
// its owner may be about to take the lock.
const settleTime = 10 * time.Second

// Dir is a directory of this process.
type Dir struct {
	Path string
	lock *os.File
}

// New makes a directory below base whose name starts with prefix, after removing
// those of that prefix whose owners have died. An empty base is os.TempDir().
func New(base, prefix string) (*Dir, error) {
	if base == "" {
		base = os.TempDir()
	}
	sweep(base, prefix)
	path, err := os.MkdirTemp(base, prefix)
	if err != nil {
		return nil, fmt.Errorf("make a temporary directory %q: %w", prefix, err)
	}
	d := &Dir{Path: path}
	if d.lock, err = os.OpenFile(filepath.Join(path, ownerFile), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		d.Remove()
		return nil, fmt.Errorf("make the lock of temporary directory %q: %w", path, err)
	}
	if err := syscall.Flock(int(d.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		d.Remove()
		return nil, fmt.Errorf("lock temporary directory %q: %w", path, err)
	}
	return d, nil
}

// Remove deletes the directory. What cannot be deleted now is left to a later
// New, so there is nobody to tell.
func (d *Dir) Remove() {
	_ = os.RemoveAll(d.Path)
	if d.lock != nil {
		_ = d.lock.Close()
	}
}

func sweep(base, prefix string) {
	entries, err := os.ReadDir(base)
	if err != nil {
		return // the caller's own attempt will tell
	}
	for _, entry := range entries {
		path := filepath.Join(base, entry.Name())
		if len(entry.Name()) <= len(prefix) || entry.Name()[:len(prefix)] != prefix || !entry.IsDir() {
			continue
		}
		if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > settleTime && abandoned(path) {
			_ = os.RemoveAll(path) // what is in the way is there the next time, too
		}
	}
}

// abandoned reports whether nobody holds the lock of a directory.
func abandoned(path string) bool {
	lock, err := os.Open(filepath.Join(path, ownerFile))
	if err != nil {
		return os.IsNotExist(err) // its owner died before it made the lock
	}
	defer func() { _ = lock.Close() }()
	return syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}
