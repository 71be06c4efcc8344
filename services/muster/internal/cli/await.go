package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/follow"
	"muster.dev/muster/services/internal/client/output"
	"muster.dev/muster/services/internal/client/program"
)

// await waits for all submissions at once and reports all that went wrong.
func (o *submitOptions) await(cmd *cobra.Command, b *bus.Bus, goal follow.Goal, submissions []sent) error {
	progress := program.Lines(cmd.OutOrStdout())
	var waits []func() error
	for i := range submissions {
		s := &submissions[i]
		w := &waiting{out: progress, label: s.Document.String(), id: s.Workload, goal: goal, timeout: o.timeout, messageID: s.MessageID(s.queue), pause: sendAgainAfter, before: s.life.Before}
		w.position = func(ctx context.Context) int32 {
			answer, err := query.NewClient(b.Conn()).Workloads(ctx, query.WorkloadsRequest{ID: s.Workload})
			if err != nil || len(answer.Workloads) != 1 {
				return 0
			}
			return answer.Workloads[0].Position
		}
		w.again = func(ctx context.Context) error { return s.Send(ctx, b, s.queue, o.as) }
		w.accepted = sync.OnceFunc(func() { o.print(progress, s) })
		if o.quiet {
			w.out = nil
		}
		waits = append(waits, func() error { return w.until(cmd.Context(), s.life) })
	}
	return together(cmd.ErrOrStderr(), waits)
}

// together runs all waits at once and reports all that went wrong.
func together(errOut io.Writer, waits []func() error) error {
	failures := make([]error, len(waits))
	var all sync.WaitGroup
	for i, wait := range waits {
		all.Go(func() { failures[i] = wait() })
	}
	all.Wait()
	return report(errOut, slices.DeleteFunc(failures, func(err error) bool { return err == nil }))
}

// report returns the only failure, or prints several and returns the exit code of the first.
func report(errOut io.Writer, failed []error) error {
	if len(failed) < 2 {
		return errors.Join(failed...)
	}
	for _, err := range failed {
		fmt.Fprintf(errOut, "muster: %s\n", output.Cell(err.Error()))
	}
	return exit.With(exit.Code(failed[0]), nil) // all has been printed
}
