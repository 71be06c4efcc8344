package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"time"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/follow"
	"muster.dev/muster/services/internal/client/output"
)

// repeatGrace is how long a repeated submission waits for an answer: the same content
// again changes nothing, so there may be none.
const repeatGrace = 2 * time.Second

// gone is the goal of a cancellation: the end, whichever.
const gone = follow.Goal("gone")

// waiting follows one workload until a goal.
type waiting struct {
	out     io.Writer // nil prints no progress
	label   string
	id      workload.ID
	goal    follow.Goal
	timeout time.Duration // zero is without end
	// messageID is of our submission, if it is one that we wait for, and again sends it
	// once more while there is no news of it, first after pause.
	messageID string
	again     func(context.Context) error
	pause     time.Duration

	// accepted reports that a submission was not rejected; nil for none.
	accepted func()

	// position returns the position of the workload in its queue; 0 where that is not known.
	// It is nil where the steps have it.
	position func(context.Context) int32

	// before is the last step of an earlier submission with the same source and id.
	before *follow.Step

	last  workload.Record
	since time.Time
}

// until waits until the goal is reached, missed, or the time is over.
func (w *waiting) until(ctx context.Context, steps life) error {
	w.since = time.Now()
	bounded, cancel := ctx, context.CancelFunc(func() {})
	if w.timeout > 0 {
		bounded, cancel = context.WithTimeout(ctx, w.timeout)
	}
	defer cancel()
	if w.before != nil && w.before.Record.Phase != workload.Rejected { // a rejected one was never a workload
		done, err := w.repeated(bounded, steps)
		if done {
			return err
		}
	}
	for {
		step, err := w.next(bounded, steps)
		if err != nil {
			return w.unfinished(ctx, err)
		}
		if done, err := w.handle(w.placed(bounded, step)); done {
			if err == nil {
				w.decision(bounded, steps)
			}
			return err
		}
	}
}

// decision prints the first decision about a workload that has just been queued, if it comes
// soon.
func (w *waiting) decision(ctx context.Context, steps life) {
	if w.goal != follow.Queued || w.out == nil || w.last.Phase != workload.Queued || w.last.Reason != nil {
		return
	}
	soon, cancel := context.WithTimeout(ctx, decisionWithin)
	defer cancel()
	if step, err := steps.Next(soon); err == nil { // without it, what is printed is true
		_, _ = w.handle(w.placed(soon, step))
	}
}

// positionWithin is how long the position in a queue is waited for: a tenant may not ask.
const positionWithin = time.Second

// placed adds the position to the first step that has why a workload waits.
func (w *waiting) placed(ctx context.Context, step follow.Step) follow.Step {
	if w.out == nil || w.position == nil || step.Record.Phase != workload.Queued || step.Record.Reason == nil {
		return step
	}
	bounded, cancel := context.WithTimeout(ctx, positionWithin)
	defer cancel()
	step.Record.Position, w.position = w.position(bounded), nil
	return step
}

// The pauses before a submission without an answer is sent again double from
// sendAgainAfter to sendAgainMost.
const (
	sendAgainAfter = 5 * time.Second
	sendAgainMost  = 4 * time.Minute
)

// next waits for the next step. A submission of which there is no news is sent again:
// a purge may have taken it from NATS before Muster did. The same content changes
// nothing.
func (w *waiting) next(ctx context.Context, steps life) (follow.Step, error) {
	for w.again != nil && w.last.Phase == "" {
		patient, cancel := context.WithTimeout(ctx, w.pause)
		step, err := steps.Next(patient)
		quiet := err != nil && patient.Err() != nil && ctx.Err() == nil
		cancel()
		if !quiet {
			return step, err
		}
		w.pause = min(2*w.pause, sendAgainMost)
		_ = w.again(ctx) // what was sent first may still be there; the next time tries again
	}
	return steps.Next(ctx)
}

// repeated judges a submission whose workload has been there before. The same content again is
// answered by what was known already, and other content by a rejection. What else comes is the
// life of the workload that is there, and no answer.
func (w *waiting) repeated(ctx context.Context, steps life) (done bool, err error) {
	graced, cancel := context.WithTimeout(ctx, repeatGrace)
	defer cancel()
	var came []follow.Step
	for last, same := w.before.Record, false; !same; {
		step, err := steps.Next(graced)
		if err != nil && graced.Err() == nil {
			return true, err
		}
		if err != nil {
			break
		}
		if step.Record.Phase == workload.Rejected {
			if done, err := w.handle(step); done {
				return true, err
			}
			continue
		}
		same = reflect.DeepEqual(step.Record, last)
		came, last = append(came, step), step.Record
	}
	w.accept()
	w.printLine("was submitted before with the same source and id")
	if len(came) == 0 {
		came = append(came, *w.before)
	}
	for _, step := range came {
		if done, err = w.handle(step); done {
			break
		}
	}
	return done, err
}

// handle prints a step and judges it; done is whether the wait is over.
func (w *waiting) handle(step follow.Step) (done bool, err error) {
	r := step.Record
	if r.Phase != workload.Rejected {
		w.accept()
		w.printRecord(r)
		for _, warning := range step.Warnings {
			w.printLine("warning: " + warning)
		}
	} else if step.MessageID != "" && step.MessageID != w.messageID {
		return false, nil // another submitter's, under the same source and id
	}
	w.last = r
	if w.goal == gone {
		return r.Phase.Final(), nil
	}
	switch w.goal.Judge(r.Phase) {
	case follow.Reached:
		return true, nil
	case follow.Missed:
		if w.out != nil { // the reason has been printed
			return true, fmt.Errorf("%s is %s", w.label, r.Phase)
		}
		return true, fmt.Errorf("%s is %s", w.label, stateOf(string(r.Phase), r.Reason))
	case follow.Rejected:
		code := exit.Rejected
		if r.Reason != nil && r.Reason.Kind == workload.ReasonFull {
			code = exit.TryAgain
		}
		return true, exit.With(code, fmt.Errorf("%s was rejected: %s", w.label, output.Reason(r.Reason)))
	}
	return false, nil
}

func (w *waiting) accept() {
	if w.accepted != nil {
		w.accepted()
	}
}

// unfinished returns what is known when the wait ends without a verdict.
func (w *waiting) unfinished(ctx context.Context, err error) error {
	if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("wait for %s: %w", w.label, err)
	}
	waited := time.Since(w.since).Round(time.Second)
	if w.last.Phase == "" {
		return exit.With(exit.Timeout, fmt.Errorf("wait for %s: no event of workload %s within %s; the message is stored, and is processed when intake and queue-manager run",
			w.label, w.id, waited))
	}
	return exit.With(exit.Timeout, fmt.Errorf("%s is not %s after %s; it is %s", w.label, w.goal, waited, stateOf(string(w.last.Phase), w.last.Reason)))
}
