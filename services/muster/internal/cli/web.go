package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/follow"
	"muster.dev/muster/services/internal/client/overhttp"
	"muster.dev/muster/services/internal/client/program"
)

// decisionWithin is how long a first decision is waited for: a submission is stored, and
// answered, before it is decided about.
const decisionWithin = 2 * time.Second

// decided returns the workload after the first decision about it, or as it is known.
func decided(ctx context.Context, web *overhttp.Client, known workload.Record) workload.Record {
	bounded, stop := context.WithTimeout(ctx, decisionWithin)
	defer stop()
	look := time.NewTicker(decisionWithin / 10)
	defer look.Stop()
	for known.Phase == workload.Queued && known.Reason == nil {
		select {
		case <-bounded.Done():
			return known
		case <-look.C:
		}
		answer, err := query.NewClientOver(web).Workloads(bounded, query.WorkloadsRequest{ID: known.ID})
		if err == nil && len(answer.Workloads) == 1 {
			known = answer.Workloads[0]
		}
	}
	return known
}

// overWeb submits over HTTP, whose answers come when the workloads are stored.
func (o *submitOptions) overWeb(cmd *cobra.Command, web *overhttp.Client, goal follow.Goal, submissions []sent) error {
	if o.as != "" || cmd.Flags().Changed("source") {
		return exit.Usagef("--as and --source are not served over HTTP, where the token or certificate names the submitter")
	}
	following, stop := context.WithCancel(cmd.Context())
	defer stop()
	var waits []func() error
	progress := program.Lines(cmd.OutOrStdout())
	for i := range submissions {
		s := &submissions[i]
		answer, err := web.Submit(cmd.Context(), overhttp.Submission{
			Queue: s.queue, ID: o.id, Priority: o.priority, PriorityClass: o.priorityClass, Manifest: s.Document.Raw,
		})
		if err != nil {
			var refused *query.ProblemError
			if err = fmt.Errorf("%s: %w", s.Document, err); errors.As(err, &refused) {
				err = exit.With(exit.Rejected, err)
			}
			waits = append(waits, func() error { return err })
			continue
		}
		s.Workload = answer.Workload
		o.print(cmd.OutOrStdout(), s)
		w := &waiting{out: progress, label: s.Document.String(), id: s.Workload, goal: goal, timeout: o.timeout}
		if o.quiet {
			w.out = nil
		}
		waits = append(waits, func() error { return o.followWeb(following, web, w, answer) })
	}
	return together(cmd.ErrOrStderr(), waits)
}

// followWeb prints the first decision about a submitted workload, and waits for the goal.
func (o *submitOptions) followWeb(ctx context.Context, web *overhttp.Client, w *waiting, answer httpapi.Submission) error {
	known := workload.Record{Workload: workload.Workload{ID: answer.Workload}}
	if answer.Record != nil {
		known = *answer.Record
		if w.out != nil {
			known = decided(ctx, web, known)
		}
		if done, err := w.handle(follow.Step{Record: known}); done {
			return err
		}
	}
	if w.goal == follow.Submitted {
		return nil
	}
	return w.until(ctx, web.Follow(ctx, known))
}

// overWeb prints the events of a workload, a queue or all workloads since a time, or the last and the
// following ones, until the workload or the user ends it.
func (o *eventsOptions) overWeb(ctx context.Context, web *overhttp.Client, since time.Time, out io.Writer) error {
	switch {
	case !o.follow && !o.fresh && since.IsZero():
		return exit.Usagef("over HTTP events begin at a time: want --since 1h for the past or --follow for what comes")
	case o.workload != "" && o.queue != "":
		return exit.Usagef("over HTTP there are the events of all workloads, of one or of a queue: want --workload or --queue, or neither")
	}
	from := overhttp.From{Since: since, Past: !o.follow && !o.fresh}
	show := func(e overhttp.Event) error {
		step, err := e.Step()
		if err == nil && o.elsewhere(&step.Record) {
			return nil
		}
		payload, _ := e.Payload() // none of one that cannot be read
		line, shown := o.otherLine(payload)
		switch {
		case !shown:
			return nil
		case o.output.Data():
			return o.printData(e.Data, out)
		case err == nil:
			return printStep(step, out)
		case line != "":
			return printLine(e.At, line, out)
		}
		return err
	}
	err := error(nil)
	switch {
	case o.queue != "":
		err = web.QueueEvents(ctx, o.queue, from, show)
	case o.workload == "":
		err = web.Events(ctx, from, show)
	default:
		var record workload.Record
		err = answered(ctx, func(ctx context.Context) (err error) {
			record, err = findWorkload(ctx, query.NewClientOver(web), o.workload, o.namespace)
			return err
		})
		if err != nil {
			return err
		}
		err = web.WorkloadEvents(ctx, record.ID, from, show)
	}
	if ctx.Err() != nil {
		return nil // the user has seen enough
	}
	return err
}
