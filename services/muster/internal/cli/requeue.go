package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/program"
)

func requeueCommand(s *server) *cobra.Command {
	o := &requestOptions{server: s}
	cmd := &cobra.Command{
		Use:   "requeue NAME|ID",
		Short: "Take an admitted workload down and queue it again",
		Long: `Take an admitted workload down and queue it again, at its place by the time of its
submission. It has the grace period of an eviction to save its work, and may be
admitted again as soon as its pods are gone; to keep it waiting, hold it meanwhile with
"muster hold workload". The requeue does not count as a fault of the workload.

Over NATS this command is for operators. Over HTTP a submitter may requeue its own
workloads.

The workload's history and the recorded inputs show who asked, when and why.`,
		Example: `  muster requeue fine-tune --why "the node needs a reboot"`,
		Args:    program.Args(1, 1, "one name or id"),
		RunE: func(cmd *cobra.Command, names []string) error {
			return o.run(cmd, names[0], o.requeue())
		},
		ValidArgsFunction: completeWorkloads(s, true),
	}
	o.addFlags(cmd)
	return cmd
}

func (o *requestOptions) requeue() change {
	attempt := 0 // the one that is to be taken down
	return change{
		verb: "requeue", refused: event.NotRequeued,
		made: func(r *workload.Record, _ time.Time) string {
			switch {
			case attempt == 0: // before it is asked for
				return ""
			case r.Phase == workload.Evicting && r.Attempt == attempt:
				return fmt.Sprintf("is being requeued: attempt %d is taken down", attempt)
			case r.Attempt > attempt:
				return fmt.Sprintf("is queued again: attempt %d is over", attempt)
			}
			return ""
		},
		ask: func(ctx context.Context, c *connection, r workload.Record) error {
			attempt = r.Attempt
			return c.requeue(ctx, r, o.by, o.why)
		},
	}
}
