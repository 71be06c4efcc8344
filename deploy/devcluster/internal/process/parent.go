package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Reasons for which a process that is bound to another one ends.
var (
	ErrParentEnded = errors.New("the parent process ended")
	ErrStdinClosed = errors.New("standard input was closed")
)

// parentPollInterval is how often a parent is looked for where the kernel has no
// descriptors of processes.
const parentPollInterval = 200 * time.Millisecond

// BindToProcess returns a context that is cancelled when the process pid ends.
func BindToProcess(ctx context.Context, pid int) (context.Context, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	fd, err := unix.PidfdOpen(pid, 0)
	switch {
	case err == nil:
		go func() {
			defer unix.Close(fd)
			fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			for {
				n, err := unix.Poll(fds, -1)
				if n > 0 || (err != nil && !errors.Is(err, unix.EINTR)) {
					cancel(fmt.Errorf("%w (pid %d)", ErrParentEnded, pid))
					return
				}
			}
		}()
	case errors.Is(err, unix.ESRCH):
		cancel(nil)
		return nil, fmt.Errorf("binding to the process %d: no such process", pid)
	default: // A kernel before 5.3, or a sandbox that refuses the call.
		go pollProcess(ctx, cancel, pid)
	}
	return ctx, nil
}

func pollProcess(ctx context.Context, cancel context.CancelCauseFunc, pid int) {
	tick := time.NewTicker(parentPollInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
				cancel(fmt.Errorf("%w (pid %d)", ErrParentEnded, pid))
				return
			}
		}
	}
}

// BindToStdin returns a context that is cancelled at the end of standard input:
// a parent that holds the other end of a pipe ends this process by its own end,
// however it comes.
func BindToStdin(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel(ErrStdinClosed)
	}()
	return ctx
}
