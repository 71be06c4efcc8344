// Package exit is how a command ends: the exit codes, the errors that choose one, and the
// code of every other error. It is not for printing the errors (package program).
package exit

import (
	"context"
	"errors"
	"fmt"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/services/internal/client/submission"
)

// Exit codes.
const (
	OK          = 0
	Failure     = 1
	Usage       = 2
	NotFound    = 3
	Rejected    = 4
	Timeout     = 5
	Unreachable = 6
	TryAgain    = 7
	Differs     = 8
)

// Help is shown by the help of the root command.
const Help = `Exit codes:
  0  done
  1  the command failed, or the workload that it waited for
  2  the command line is wrong
  3  no such workload, queue or node
  4  Muster rejected a submission
  5  --timeout has passed
  6  no answer from NATS, the HTTP API or queue-manager
  7  Muster, or the queue, is full: submit the same again later
  8  replayed decisions differ from the recorded ones`

// ErrUnreachable is wrapped when NATS, or the server of the HTTP API, cannot be reached.
var ErrUnreachable = errors.New("cannot reach Muster")

// decided is an error that decides the exit code. What it wraps is what the
// user reads; nothing is printed when that is nil.
type decided struct {
	code int
	err  error
}

func (d *decided) Error() string {
	if d.err == nil {
		return fmt.Sprintf("exit code %d", d.code)
	}
	return d.err.Error()
}

func (d *decided) Unwrap() error { return d.err }

// With returns an error that ends the command with the code; nothing is printed
// when err is nil.
func With(code int, err error) error { return &decided{code, err} }

// Usagef returns what is wrong with the command line.
func Usagef(format string, args ...any) error { return With(Usage, fmt.Errorf(format, args...)) }

// NotFoundf returns what there is not.
func NotFoundf(format string, args ...any) error {
	return With(NotFound, fmt.Errorf(format, args...))
}

// Silent reports whether the command has printed everything about the error.
func Silent(err error) bool {
	var d *decided
	return errors.As(err, &d) && d.err == nil
}

// Code is the exit code for an error of a command.
func Code(err error) int {
	var d *decided
	switch {
	case err == nil:
		return OK
	case errors.As(err, &d):
		return d.code
	case errors.Is(err, bus.ErrFull):
		return TryAgain
	case errors.Is(err, query.ErrNoAnswer), errors.Is(err, bus.ErrNoStream), errors.Is(err, ErrUnreachable),
		errors.Is(err, submission.ErrNotStored):
		return Unreachable
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	}
	return Failure
}
