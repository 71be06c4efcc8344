package cli

import (
	"context"
	"errors"
	"fmt"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/query"
	"muster.dev/muster/services/muster/internal/submission"
)

// Exit codes.
const (
	ExitOK          = 0
	ExitFailure     = 1
	ExitUsage       = 2
	ExitNotFound    = 3
	ExitRejected    = 4
	ExitTimeout     = 5
	ExitUnreachable = 6
	ExitTryAgain    = 7
	ExitDiffers     = 8
)

// exitHelp is shown by the help of the root command.
const exitHelp = `Exit codes:
  0  done
  1  it failed; so did a workload that was waited for
  2  the command line is wrong
  3  no such workload, queue or node
  4  Muster rejected a submission
  5  the time to wait is over
  6  no answer: NATS or queue-manager is not there
  7  Muster, or the queue, is full: submit the same again later
  8  replayed decisions came out differently`

// exitError is an error that decides the exit code. What it wraps is what the
// user reads; nothing is printed when that is nil.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func usage(format string, args ...any) error {
	return &exitError{ExitUsage, fmt.Errorf(format, args...)}
}

func notFound(format string, args ...any) error {
	return &exitError{ExitNotFound, fmt.Errorf(format, args...)}
}

// exitCode is the code for an error of a command.
func exitCode(err error) int {
	var decided *exitError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &decided):
		return decided.code
	case errors.Is(err, bus.ErrFull):
		return ExitTryAgain
	case errors.Is(err, query.ErrNoAnswer), errors.Is(err, bus.ErrNoStream), errors.Is(err, errUnreachable),
		errors.Is(err, submission.ErrNotStored):
		return ExitUnreachable
	case errors.Is(err, context.DeadlineExceeded):
		return ExitTimeout
	}
	return ExitFailure
}
