package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/program"
)

// moveOptions are the flags of "move".
type moveOptions struct {
	server                    *server
	namespace, queue, why, by string
	timeout                   time.Duration
}

func moveCommand(s *server) *cobra.Command {
	o := &moveOptions{server: s}
	cmd := &cobra.Command{
		Use:   "move NAME|ID --queue QUEUE",
		Short: "Move a waiting workload to another queue",
		Long: `Move a waiting workload to another queue. This command is for operators.

The workload keeps its id, and its place by the time of its submission. The other
queue must serve its namespace, admit its submitter, allow what it asks for, and have
the same rules for objects and pods; otherwise the workload stays where it is and the
command prints the reason. From then on its events come on the subject of the other
queue.

The workload's history and the recorded inputs show who asked, when and why.`,
		Example: `  muster move fine-tune --queue research --why "the deadline is Friday"`,
		Args:    program.Args(1, 1, "one name or id"),
		RunE: func(cmd *cobra.Command, names []string) error {
			return o.run(cmd, names[0])
		},
		ValidArgsFunction: completeWorkloads(s, true),
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.queue, "queue", "q", "", "the `queue` to move the workload to")
	flags.StringVarP(&o.namespace, "namespace", "n", "", "the `namespace` of the workload, if its name is ambiguous")
	flags.StringVar(&o.why, "why", "", "the `reason`, stored with the workload")
	flags.StringVar(&o.by, "by", account(), "`who` asks, stored with the workload")
	flags.DurationVar(&o.timeout, "timeout", 30*time.Second, "how long to wait for the answer")
	program.CompleteFlag(cmd, "queue", completeQueues(s))
	return cmd
}

func (o *moveOptions) run(cmd *cobra.Command, name string) error {
	if !workload.ValidName(o.queue) {
		return exit.Usagef("--queue %q: want the name of the queue to move to", o.queue)
	}
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	c, err := o.server.open(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	if err := answered(ctx, func(ctx context.Context) error { return thereIsQueue(ctx, c.queries, o.queue) }); err != nil {
		return err
	}
	record, err := c.find(ctx, name, o.namespace)
	if err != nil {
		return err
	}
	if record.Queue == o.queue {
		fmt.Fprintf(out, "unchanged: %s is in queue %s\n", reference(record.Workload), o.queue)
		return nil
	}
	following, stop := context.WithTimeout(ctx, o.timeout)
	defer stop()
	steps, err := c.follow(following, record)
	if err != nil {
		return err
	}
	if err := c.move(ctx, record, o.queue, o.by, o.why); err != nil {
		return err
	}
	for {
		step, err := steps.Next(following)
		switch {
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			return exit.With(exit.Timeout, fmt.Errorf("move %s: no answer within %s; the message is stored, and is processed when queue-manager runs", reference(record.Workload), o.timeout))
		case err != nil:
			return err
		case step.Record.Queue == o.queue:
			fmt.Fprintf(out, "%s is in queue %s now\n", reference(record.Workload), o.queue)
			return nil
		case step.Record.Reason != nil && strings.HasPrefix(step.Record.Reason.Message, "not moved: "):
			return exit.With(exit.Rejected, fmt.Errorf("%s: %s", reference(record.Workload), step.Record.Reason.Message))
		}
	}
}
