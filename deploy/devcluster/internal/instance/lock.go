package instance

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

var errLocked = errors.New("locked by another process")

// Lock is the proof that this process owns an instance.
type Lock struct {
	dir  Dir
	file *os.File
}

// acquire locks the file at path without waiting. The file may be removed by the
// process that held it before; the lock counts only on the file that is still
// there.
func acquire(path string) (*Lock, error) {
	for {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("opening the lock file: %w", err)
		}
		if err := unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, wholeFile()); err != nil {
			file.Close()
			if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
				return nil, errLocked
			}
			return nil, fmt.Errorf("locking %q: %w", path, err)
		}
		if sameFile(file, path) {
			return &Lock{file: file}, nil
		}
		file.Close()
	}
}

func sameFile(file *os.File, path string) bool {
	held, err := file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(held, there)
}

func (l *Lock) release() { l.file.Close() }

// Remove removes the instance's directory and gives up the lock. The lock file
// goes last, so that a half-removed directory is still known as an instance's.
func (l *Lock) Remove() error {
	defer l.release()
	if err := l.dir.clear(); err != nil {
		return err
	}
	if err := os.Remove(l.dir.File(lockFile)); err != nil {
		return fmt.Errorf("removing the lock file: %w", err)
	}
	if err := os.Remove(l.dir.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		// Another process may be claiming the same name at this moment.
		if !errors.Is(err, syscall.ENOTEMPTY) {
			return fmt.Errorf("removing the state directory: %w", err)
		}
	}
	return nil
}

// Running reports whether a supervisor holds the directory.
func (d Dir) Running() bool {
	file, err := os.Open(d.File(lockFile))
	if err != nil {
		return false
	}
	defer file.Close()
	// Asking does not take the lock, so it never disturbs one who wants it.
	lock := wholeFile()
	err = unix.FcntlFlock(file.Fd(), unix.F_OFD_GETLK, lock)
	return err == nil && lock.Type != unix.F_UNLCK
}

// wholeFile describes an exclusive lock of an open file description, which the
// kernel drops when the process that opened the file ends.
func wholeFile() *unix.Flock_t {
	return &unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
}

func ownerOf(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return -1
}
