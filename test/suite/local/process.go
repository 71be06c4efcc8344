package local

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// process is a part that is a program of ours.
type process struct {
	binary    string
	arguments []string
	// environment beside that of this process.
	environment []string

	log   string
	ready string // URL that answers 200 when it is ready

	cmd   *exec.Cmd
	ended chan struct{}
}

// start starts the program, which dies with this process. The kernel ties it to
// the thread that started it, so one is kept for it.
func (p *process) start() error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(p.binary, p.arguments...)
	cmd.Env = append(os.Environ(), p.environment...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started, ended := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is in its log
			close(ended)
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", p.binary, err)
	}
	p.cmd, p.ended = cmd, ended
	return nil
}

func (p *process) signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// kill ends the process at once.
func (p *process) kill() {
	_ = p.signal(syscall.SIGKILL) // it may have ended
	<-p.ended
}

const (
	readyTimeout = 30 * time.Second
	readyPoll    = 50 * time.Millisecond
)

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// awaitReady returns when the part is ready.
func (p *process) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.ready, nil)
		if err != nil {
			return err
		}
		if response, err := http.DefaultClient.Do(request); err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK && !p.hasEnded() { // another may answer in its place
				return nil
			}
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%s has ended; its log:\n%s", p.binary, tail(p.log))
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready within %s; its log:\n%s", p.binary, readyTimeout, tail(p.log))
		case <-time.After(readyPoll):
		}
	}
}

// shown bounds what is shown of a log, in bytes.
const shown = 4000

func tail(file string) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	return string(content[max(0, len(content)-shown):])
}

// freePorts asks the kernel for ports.
func freePorts(count int) ([]int, error) {
	var ports []int
	for range count {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer listener.Close()
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
