package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/follow"
	"muster.dev/muster/services/internal/client/output"
	"muster.dev/muster/services/internal/client/overhttp"
)

// overWeb finds a workload over HTTP and does something with it.
func overWeb(ctx context.Context, web *overhttp.Client, name, namespace string, with func(context.Context, workload.Record) error) error {
	return answered(ctx, func(ctx context.Context) error {
		record, err := findWorkload(ctx, query.NewClientOver(web), name, namespace)
		if err != nil {
			return err
		}
		return with(ctx, record)
	})
}

// lookAgain is how often a move over HTTP is looked for.
const lookAgain = 500 * time.Millisecond

// overWeb moves a workload over HTTP, and looks until it is in the other queue.
func (o *moveOptions) overWeb(ctx context.Context, out io.Writer, web *overhttp.Client, name string) error {
	var record workload.Record
	err := overWeb(ctx, web, name, o.namespace, func(ctx context.Context, found workload.Record) error {
		record = found
		return web.Move(ctx, record.ID, o.queue, o.why)
	})
	if err != nil {
		return err
	}
	bounded, stop := context.WithTimeout(ctx, o.timeout)
	defer stop()
	look := time.NewTicker(lookAgain)
	defer look.Stop()
	for {
		answer, err := query.NewClientOver(web).Workloads(bounded, query.WorkloadsRequest{ID: record.ID})
		if err == nil && len(answer.Workloads) == 1 && answer.Workloads[0].Queue == o.queue {
			fmt.Fprintf(out, "%s is in queue %s now\n", reference(record.Workload), o.queue)
			return nil
		}
		select {
		case <-bounded.Done():
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return exit.With(exit.Timeout, fmt.Errorf("%s is not in queue %s after %s; its events say why", reference(record.Workload), o.queue, o.timeout))
		case <-look.C:
		}
	}
}

// decisionWithin is how long a first decision is waited for: the answer to a submission
// comes when it is stored, which may be before.
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
	if goal != follow.Queued && goal != follow.Submitted || o.as != "" || cmd.Flags().Changed("source") {
		return exit.Usagef("--wait=%s, --as and --source are not served over HTTP: follow the workload with `muster get` or use --nats-url instead of --server", goal)
	}
	var failed []error
	for _, s := range submissions {
		answer, err := web.Submit(cmd.Context(), overhttp.Submission{
			Queue: o.queue, ID: o.id, Priority: o.priority, PriorityClass: o.priorityClass, Manifest: s.Document.Raw,
		})
		var refused *query.ProblemError
		switch {
		case errors.As(err, &refused):
			failed = append(failed, exit.With(exit.Rejected, fmt.Errorf("%s: %w", s.Document, err)))
			continue
		case err != nil:
			failed = append(failed, fmt.Errorf("%s: %w", s.Document, err))
			continue
		}
		s.Workload = answer.Workload
		o.print(cmd.OutOrStdout(), &s)
		if answer.Record != nil && !o.quiet {
			record := decided(cmd.Context(), web, *answer.Record)
			(&waiting{out: cmd.OutOrStdout(), label: s.Document.String()}).printRecord(record)
		}
	}
	if len(failed) == 1 {
		return failed[0]
	}
	for _, err := range failed {
		fmt.Fprintf(cmd.ErrOrStderr(), "muster: %s\n", output.Cell(err.Error()))
	}
	if len(failed) > 0 {
		return exit.With(exit.Code(failed[0]), nil) // all has been said
	}
	return nil
}
