// Package instance keeps the state directories of dev clusters: where each one
// lives, which of them are running, and what is left of those that were killed.
//
// An instance is running exactly as long as its supervisor holds the lock on the
// lock file of its directory. The kernel drops the lock with the supervisor, so
// a directory whose lock is free has no owner and can be swept.
package instance

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// DefaultName is the instance that commands mean without a name.
const DefaultName = "default"

const (
	lockFile  = "lock"
	stateFile = "instance.json"
)

// claimPatience is how long a claim waits for a lock held by another process.
const claimPatience = time.Second

var validName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?$`)

// ErrRunning is returned for an instance that is running already.
var ErrRunning = errors.New("is running already")

// ErrNotRunning is returned for an instance that is not running.
var ErrNotRunning = errors.New("is not running")

// Dir is the state directory of one instance.
type Dir struct {
	Name string
	Path string
}

// Locate returns the state directory of the instance name: path when given, else
// the usual place for that name.
func Locate(name, path string) (Dir, error) {
	if !validName.MatchString(name) {
		return Dir{}, fmt.Errorf("instance name %q: must be 1 to 42 lower-case letters, digits and '-', not at the ends", name)
	}
	if path == "" {
		return Dir{Name: name, Path: filepath.Join(root(), name)}, nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return Dir{}, fmt.Errorf("state directory %q: %w", path, err)
	}
	return Dir{Name: name, Path: abs}, nil
}

// root holds the state directories of this user's instances.
func root() string {
	return filepath.Join(os.TempDir(), "muster-devcluster-"+strconv.Itoa(os.Getuid()))
}

// File returns the path of a file in the directory.
func (d Dir) File(elem ...string) string {
	return filepath.Join(append([]string{d.Path}, elem...)...)
}

// AdminKubeconfig is the kubeconfig of the cluster's administrator.
func (d Dir) AdminKubeconfig() string { return d.File("admin.kubeconfig") }

// Log is the log file of a component.
func (d Dir) Log(component string) string { return d.File("logs", component+".log") }

// Claim makes the directory and locks it for this process. It refuses a
// directory that is not ours to delete later: one that has files but no lock
// file of an instance.
func (d Dir) Claim() (*Lock, error) {
	entries, err := os.ReadDir(d.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the state directory: %w", err)
	}
	if len(entries) > 0 {
		if _, err := os.Stat(d.File(lockFile)); err != nil {
			return nil, fmt.Errorf("state directory %q has files that are not an instance's; name an empty or a new one", d.Path)
		}
	}
	lock, err := d.lock()
	if err != nil {
		return nil, err
	}
	lock.dir = d
	if err := d.clear(); err != nil {
		lock.release()
		return nil, err
	}
	if err := os.Mkdir(d.File("logs"), 0o700); err != nil {
		lock.release()
		return nil, fmt.Errorf("making the directory of logs: %w", err)
	}
	return lock, nil
}

// lock makes the directory and takes its lock. It insists for a moment: the
// holder may be a sweep, which removes the directory and lets go at once.
func (d Dir) lock() (*Lock, error) {
	deadline := time.Now().Add(claimPatience)
	for {
		if err := makePrivate(d.Path); err != nil {
			return nil, err
		}
		lock, err := acquire(d.File(lockFile))
		swept := errors.Is(err, fs.ErrNotExist)
		switch {
		case err == nil:
			return lock, nil
		case !swept && !errors.Is(err, errLocked):
			return nil, err
		case time.Now().After(deadline):
			return nil, fmt.Errorf("instance %q %w (directory %q)", d.Name, ErrRunning, d.Path)
		}
		time.Sleep(stopPollInterval)
	}
}

// clear removes what a killed instance has left, save the lock file.
func (d Dir) clear() error {
	entries, err := os.ReadDir(d.Path)
	if err != nil {
		return fmt.Errorf("reading the state directory: %w", err)
	}
	for _, entry := range entries {
		if entry.Name() == lockFile {
			continue
		}
		if err := os.RemoveAll(d.File(entry.Name())); err != nil {
			return fmt.Errorf("clearing the state directory: %w", err)
		}
	}
	return nil
}

// makePrivate makes a directory that only this user can enter: it will hold an
// administrator's key. In a directory that others can write to, as the one for
// temporary files, another user may have created it first.
func makePrivate(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("making the state directory: %w", err)
	}
	owned := []string{path}
	if filepath.Dir(path) == root() {
		owned = append(owned, root())
	}
	for _, p := range owned {
		info, err := os.Lstat(p)
		if err != nil {
			return fmt.Errorf("looking at the state directory: %w", err)
		}
		if owner := ownerOf(info); !info.IsDir() || owner != os.Getuid() {
			return fmt.Errorf("state directory %q: is not a directory of user %d (owner is %d)", p, os.Getuid(), owner)
		}
	}
	if err := os.Chmod(path, 0o700); err != nil {
		return fmt.Errorf("protecting the state directory: %w", err)
	}
	return nil
}
