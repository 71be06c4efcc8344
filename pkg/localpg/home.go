package localpg

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// homePrefix starts the name of every server's directory.
const homePrefix = "muster-postgres-"

// ownerFile is locked by the process that owns the directory for as long as it
// lives; the kernel gives the lock up when the process dies, however it dies.
const ownerFile = "owner.lock"

// settleTime is how young a directory has to be for the sweep to leave it alone:
// its owner may be about to take the lock.
const settleTime = 10 * time.Second

// home is the directory of one server, owned by this process.
type home struct {
	dir     string
	account *syscall.Credential // who runs the server; nil is whoever runs this process
	lock    *os.File
}

// newHome makes a directory for a server below base.
func newHome(base string, account *syscall.Credential) (*home, error) {
	dir, err := os.MkdirTemp(base, homePrefix)
	if err != nil {
		return nil, fmt.Errorf("make a directory for Postgres: %w", err)
	}
	h := &home{dir: dir, account: account}
	if h.lock, err = os.OpenFile(filepath.Join(dir, ownerFile), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		h.remove()
		return nil, fmt.Errorf("make the lock of a Postgres directory: %w", err)
	}
	if err := syscall.Flock(int(h.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		h.remove()
		return nil, fmt.Errorf("lock Postgres directory %q: %w", dir, err)
	}
	if account != nil {
		if err := os.Chown(dir, int(account.Uid), int(account.Gid)); err != nil {
			h.remove()
			return nil, fmt.Errorf("give Postgres directory %q to user id %d: %w", dir, account.Uid, err)
		}
	}
	return h, nil
}

// remove deletes the directory. What cannot be deleted now is left to the sweep
// of a later start, so there is nobody to tell.
func (h *home) remove() {
	_ = os.RemoveAll(h.dir)
	if h.lock != nil {
		_ = h.lock.Close()
	}
}

// sweep removes the directories below base whose owners are dead. Their servers
// are dead too: they get a signal when their parent dies.
func sweep(base string) {
	dirs, _ := filepath.Glob(filepath.Join(base, homePrefix+"*")) // the pattern is well formed
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil || !info.IsDir() || time.Since(info.ModTime()) < settleTime {
			continue
		}
		lock, err := os.Open(filepath.Join(dir, ownerFile))
		if err != nil && !os.IsNotExist(err) {
			continue // another user's
		}
		if err == nil {
			free := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
			_ = lock.Close()
			if !free {
				continue
			}
		}
		_ = os.RemoveAll(dir)
	}
}

// serverAccount is the user to run Postgres as, which refuses to run as root.
func serverAccount() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(found.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(found.Gid, 10, 32)
		if uidErr == nil && gidErr == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, fmt.Errorf("run Postgres: it refuses to run as root, and this machine has neither a user postgres nor a user nobody")
}
