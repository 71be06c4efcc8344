package postgres

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stopPatience is the time for a shutdown before the next, rougher one.
const stopPatience = 10 * time.Second

// readyPoll is the period of reads of the server's status file during the start.
const readyPoll = 10 * time.Millisecond

// launch runs the server on a free port and waits until it accepts connections.
func (s *Server) launch(ctx context.Context, binaries string) error {
	var failure error
	for range portAttempts {
		port, err := freePort()
		if err != nil {
			return err
		}
		s.port = port
		s.process, failure = startProcess(s, binaries)
		if failure != nil {
			return failure
		}
		if failure = s.awaitReady(ctx); failure == nil {
			return nil
		}
		s.process.stop()
		if ctx.Err() != nil || !strings.Contains(s.logTail(), "could not bind") {
			return failure
		}
	}
	return fmt.Errorf("Postgres found no free port in %d attempts: %w", portAttempts, failure)
}

// awaitReady waits for the status in the server's pid file, because a connection could
// reach another server that took the port.
func (s *Server) awaitReady(ctx context.Context) error {
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	for {
		select {
		case <-s.process.exited:
			return fmt.Errorf("Postgres ended while it started (%v): %s", s.process.err, s.logTail())
		case <-ctx.Done():
			return fmt.Errorf("wait for Postgres on port %d to accept connections: %w; its log: %s", s.port, ctx.Err(), s.logTail())
		case <-ticker.C:
			if s.ready() {
				return nil
			}
		}
	}
}

// ready reads postmaster.pid: line 1 is the process id, line 8 the status.
func (s *Server) ready() bool {
	content, err := os.ReadFile(filepath.Join(s.dataDir(), "postmaster.pid"))
	if err != nil {
		return false
	}
	lines := strings.Split(string(content), "\n")
	return len(lines) >= 8 && lines[0] == strconv.Itoa(s.process.cmd.Process.Pid) && strings.TrimSpace(lines[7]) == "ready"
}

// logTail returns the end of the server's log.
func (s *Server) logTail() string {
	content, err := os.ReadFile(s.LogFile())
	if err != nil {
		return "no log: " + err.Error()
	}
	const most = 2000
	return string(bytes.TrimSpace(content[max(0, len(content)-most):]))
}

// process is the server's process. err may be read once exited is closed.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{}
	err    error
}

// startProcess starts the server so that it dies with this process: the kernel sends it
// SIGQUIT (an immediate shutdown) when the starting thread ends, so that thread is kept.
// A separate process group keeps a Ctrl-C on the terminal from ending the server out of
// order.
func startProcess(s *Server, binaries string) (*process, error) {
	log, err := os.OpenFile(s.LogFile(), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create the log of Postgres: %w", err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(filepath.Join(binaries, "postgres"), "-D", s.dataDir(), "-p", strconv.Itoa(s.port))
	cmd.Dir, cmd.Env = s.home.Path, environment()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.home.account, Setpgid: true, Pdeathsig: syscall.SIGQUIT}
	p := &process{cmd: cmd, exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.exited)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// stop ends the process: by fast shutdown, then immediate shutdown, then by force.
func (p *process) stop() {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGKILL} {
		_ = p.cmd.Process.Signal(signal) // the process may have ended
		select {
		case <-p.exited:
			return
		case <-time.After(stopPatience):
		}
	}
}

// freePort asks the kernel for a port of the loopback interface.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port for Postgres: %w", err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// environment is that of the server's programs, without the user's PG* variables and
// locale.
func environment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
}
