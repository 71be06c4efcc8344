package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// readyFD is the descriptor on which a component reports that it is ready.
// Descriptors passed by the supervisor follow it.
const readyFD = 3

// InheritedFD is the descriptor of the first file given in Spec.Files, as the
// component sees it.
const InheritedFD = readyFD + 1

// Spec is how to start one component.
type Spec struct {
	Name    string     // Name is unique in an instance, as in "apiserver".
	Args    []string   // Args are the arguments of this same program.
	Env     []string   // Env is added to the environment.
	Files   []*os.File // Files are inherited, the first as InheritedFD.
	LogFile string     // LogFile gets standard output and error.
}

// Component is a running child process.
type Component struct {
	Name    string
	PID     int
	LogFile string

	cmd   *exec.Cmd
	ready chan string // Gets the report of readiness, then is closed.
	ended chan struct{}
	err   error // Valid once ended is closed.
}

// Start starts the component that spec describes.
func Start(s *Spawner, spec Spec) (*Component, error) {
	exe, err := self()
	if err != nil {
		return nil, err
	}
	logFile, err := os.OpenFile(spec.LogFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("component %s: opening its log: %w", spec.Name, err)
	}
	defer logFile.Close()
	reportRead, reportWrite, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("component %s: making its readiness pipe: %w", spec.Name, err)
	}
	defer reportWrite.Close()

	cmd := exec.Command(exe, spec.Args...)
	cmd.Env = append(os.Environ(), spec.Env...)
	cmd.Stdout, cmd.Stderr = logFile, logFile
	cmd.ExtraFiles = append([]*os.File{reportWrite}, spec.Files...)
	if err := s.Start(cmd); err != nil {
		reportRead.Close()
		return nil, fmt.Errorf("component %s: %w", spec.Name, err)
	}
	c := &Component{
		Name: spec.Name, PID: cmd.Process.Pid, LogFile: spec.LogFile,
		cmd: cmd, ready: make(chan string, 1), ended: make(chan struct{}),
	}
	go func() {
		defer reportRead.Close()
		defer close(c.ready)
		if line, err := bufio.NewReader(reportRead).ReadString('\n'); err == nil {
			c.ready <- strings.TrimSpace(line)
		}
	}()
	go func() {
		c.err = cmd.Wait()
		close(c.ended)
	}()
	return c, nil
}

// ReportReady reports to the supervisor that this component is ready, with one line
// of details. It may be called once, in the component's process.
func ReportReady(details string) error {
	f := os.NewFile(readyFD, "readiness pipe")
	if f == nil {
		return errors.New("reporting readiness: this process was not started as a component")
	}
	defer f.Close()
	if _, err := io.WriteString(f, details+"\n"); err != nil {
		return fmt.Errorf("reporting readiness: %w", err)
	}
	return nil
}

// WaitReady waits until the component reports that it is ready and returns the
// details it reported. A component that ends first is an error with the end of
// its log.
func (c *Component) WaitReady(ctx context.Context) (string, error) {
	select {
	case details, ok := <-c.ready:
		if ok {
			return details, nil
		}
		select {
		case <-c.ended:
			return "", c.Failure()
		case <-ctx.Done():
			return "", c.notReady(ctx)
		}
	case <-c.ended:
		return "", c.Failure()
	case <-ctx.Done():
		return "", c.notReady(ctx)
	}
}

func (c *Component) notReady(ctx context.Context) error {
	return fmt.Errorf("component %s is not ready: %w; the end of %s:\n%s",
		c.Name, context.Cause(ctx), c.LogFile, Tail(c.LogFile, tailLines))
}

// Ended is closed when the component's process has ended.
func (c *Component) Ended() <-chan struct{} { return c.ended }

// Failure describes the end of a component that should have gone on.
func (c *Component) Failure() error {
	how := "with exit code 0"
	if c.err != nil {
		how = "(" + c.err.Error() + ")"
	}
	return fmt.Errorf("component %s ended %s; the end of %s:\n%s",
		c.Name, how, c.LogFile, Tail(c.LogFile, tailLines))
}

// Kill ends the component at once and waits until it is gone. Nothing of a dev
// cluster outlives it, so there is nothing to stop gracefully.
func (c *Component) Kill() {
	_ = c.cmd.Process.Kill() // It fails only when the process has ended already.
	select {
	case <-c.ended:
	case <-time.After(10 * time.Second):
	}
}
