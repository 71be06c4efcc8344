package postgres

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"

	"muster.dev/muster/pkg/local/scratch"
)

// homePrefix starts the name of every server's directory.
const homePrefix = "muster-postgres-"

// home is the directory of one server. When its owner dies, the kernel's signal ends the
// server, and a later start removes the directory.
type home struct {
	*scratch.Dir
	account *syscall.Credential // the server's account; nil is that of this process
}

func newHome(base string, account *syscall.Credential) (*home, error) {
	dir, err := scratch.New(base, homePrefix)
	if err != nil {
		return nil, err
	}
	if account != nil {
		if err := os.Chown(dir.Path, int(account.Uid), int(account.Gid)); err != nil {
			dir.Remove()
			return nil, fmt.Errorf("give directory %q to user id %d: %w", dir.Path, account.Uid, err)
		}
	}
	return &home{Dir: dir, account: account}, nil
}

// serverAccount returns the account for Postgres, which refuses to run as root.
func serverAccount() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", `nobody`} {
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
	return nil, fmt.Errorf("run Postgres: it refuses to run as root, and this machine has no user postgres to run it as")
}
