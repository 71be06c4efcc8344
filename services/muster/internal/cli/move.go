package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/program"
)

func moveCommand(s *server) *cobra.Command {
	o := &requestOptions{server: s}
	queue := ""
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
			if !workload.ValidName(queue) {
				return exit.Usagef("--queue %q: want the name of the queue to move to", queue)
			}
			return o.run(cmd, names[0], o.move(queue))
		},
		ValidArgsFunction: completeWorkloads(s, true),
	}
	o.addFlags(cmd)
	cmd.Flags().StringVarP(&queue, "queue", "q", "", "the `queue` to move the workload to")
	return cmd
}

func (o *requestOptions) move(queue string) change {
	return change{
		verb: "move", refused: event.NotMoved,
		ready: func(ctx context.Context, c *connection) error { return thereIsQueue(ctx, c.queries, queue) },
		made: func(r *workload.Record, _ time.Time) string {
			if r.Queue != queue {
				return ""
			}
			return "is in queue " + queue + " now"
		},
		ask: func(ctx context.Context, c *connection, r workload.Record) error {
			return c.move(ctx, r, queue, o.by, o.why)
		},
	}
}
