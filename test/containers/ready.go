package containers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/testcontainers/testcontainers-go"
	tcexec "github.com/testcontainers/testcontainers-go/exec"
	"github.com/testcontainers/testcontainers-go/wait"
)

// ready waits until a command succeeds in a container, also while the container is started
// again. A health check of the engine would run the command every second for as long as the
// container lives, which costs a good part of a core for an installation.
type ready struct{ command []string }

// readyFirst is the pause after the first attempt. It doubles up to readyMost: each attempt is a
// process, and that of the dev cluster takes half a second of a core.
const readyFirst, readyMost = 250 * time.Millisecond, time.Second

// WaitUntilReady implements wait.Strategy.
func (r ready) WaitUntilReady(ctx context.Context, c wait.StrategyTarget) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for pause := readyFirst; ; pause = min(2*pause, readyMost) {
		_, err := output(ctx, c, r.command...)
		if err == nil {
			return nil
		}
		if ended := over(ctx, c); ended != nil {
			return errors.Join(ended, err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("not ready within %s: %w", startTimeout, errors.Join(err, ctx.Err()))
		}
	}
}

// over returns an error when a container has ended and is not started again.
func over(ctx context.Context, c wait.StrategyTarget) error {
	state, err := c.State(ctx)
	if err != nil || state.Running || state.Restarting || state.Status != "exited" && state.Status != "dead" {
		return nil // what the engine does not tell now it tells the next time
	}
	return fmt.Errorf("the container has ended with %d %s", state.ExitCode, state.Error)
}

// run starts a container and waits until it is ready.
func run(ctx context.Context, p part) (testcontainers.Container, error) {
	c, err := testcontainers.GenericContainer(ctx, p.request())
	if err != nil {
		output := ""
		if c != nil {
			if logs, e := c.Logs(ctx); e == nil {
				content, _ := io.ReadAll(io.LimitReader(logs, 4000))
				output = string(content)
			}
			_ = c.Terminate(context.WithoutCancel(ctx))
		}
		return nil, fmt.Errorf("start a container of %s with %q: %w\n%s", p.image, p.command, err, output)
	}
	return c, nil
}

// remove ends a container at once: what is thrown away need not end well.
func remove(c testcontainers.Container) error {
	return testcontainers.TerminateContainer(c, testcontainers.StopTimeout(0))
}

// executor runs commands in a container.
type executor interface {
	Exec(ctx context.Context, command []string, options ...tcexec.ProcessOption) (int, io.Reader, error)
}

// output runs a command in the container and returns what it prints.
func output(ctx context.Context, c executor, command ...string) ([]byte, error) {
	code, reader, err := c.Exec(ctx, command, tcexec.Multiplexed())
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(reader)
	if err != nil {
		return nil, err
	}
	if code != 0 {
		return nil, fmt.Errorf("%q ended with %d: %s", command, code, bytes.TrimSpace(content))
	}
	return content, nil
}
