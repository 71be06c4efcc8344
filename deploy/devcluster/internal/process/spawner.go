// Package process starts the components of a dev cluster as child processes
// and ties lifetimes together: a child dies with the supervisor, the supervisor
// dies with its parent, and the error of a failed component has the end of its log.
package process

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// Spawner starts child processes that the kernel kills when this process ends,
// whatever ends it.
//
// The kernel ties that promise (PR_SET_PDEATHSIG) to the thread that forked, not
// to the process. A Spawner therefore forks every child from one goroutine
// locked to one thread, which lives as long as the process.
type Spawner struct {
	requests chan spawnRequest
}

type spawnRequest struct {
	cmd  *exec.Cmd
	done chan error
}

// NewSpawner returns a Spawner whose thread is running.
func NewSpawner() *Spawner {
	s := &Spawner{requests: make(chan spawnRequest)}
	go func() {
		runtime.LockOSThread() // Never unlocked: the thread must outlive its children.
		for r := range s.requests {
			r.done <- r.cmd.Start()
		}
	}()
	return s
}

// Start starts cmd, which gets SIGKILL when this process dies. The child is put
// in a process group of its own, so that Ctrl-C reaches the supervisor only.
func (s *Spawner) Start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	r := spawnRequest{cmd: cmd, done: make(chan error)}
	s.requests <- r
	if err := <-r.done; err != nil {
		return fmt.Errorf("starting %q: %w", cmd.Path, err)
	}
	return nil
}

// self is the path by which a process finds its own program.
func self() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding the path of this program: %w", err)
	}
	return exe, nil
}
