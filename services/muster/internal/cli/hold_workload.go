package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/program"
)

func holdWorkloadCommand(s *server) *cobra.Command {
	o := &requestOptions{server: s}
	cmd := &cobra.Command{
		Use: "workload NAME|ID", Aliases: []string{"wl"}, Short: "Keep a waiting workload from admission until it is resumed",
		Long: `Keep a waiting workload from admission until "muster resume workload". It keeps its
place in the queue, and others pass it. Its reason shows who holds it, since when and why.

Only a workload that waits can be held. To take a running one down first, use
"muster requeue"; a workload that is being evicted is held once it waits.

Over NATS this command is for operators. Over HTTP a submitter may hold its own
workloads, and resume those that no operator holds.`,
		Example: `  muster hold workload fine-tune --why "wait for the new data set"`,
		Args:    program.Args(1, 1, "one name or id"),
		RunE: func(cmd *cobra.Command, names []string) error {
			return o.run(cmd, names[0], o.hold())
		},
		ValidArgsFunction: completeWorkloads(s, true),
	}
	o.addFlags(cmd)
	return cmd
}

func resumeWorkloadCommand(s *server) *cobra.Command {
	o := &requestOptions{server: s}
	cmd := &cobra.Command{
		Use: "workload NAME|ID", Aliases: []string{"wl"}, Short: "Let a held workload be admitted again",
		Args: program.Args(1, 1, "one name or id"),
		RunE: func(cmd *cobra.Command, names []string) error {
			return o.run(cmd, names[0], o.resume())
		},
		ValidArgsFunction: completeWorkloads(s, true),
	}
	o.addFlags(cmd)
	return cmd
}

func (o *requestOptions) hold() change {
	return change{
		verb: "hold", refused: event.NotHeld,
		made: func(r *workload.Record, _ time.Time) string { return r.Hold.Message() },
		ask: func(ctx context.Context, c *connection, r workload.Record) error {
			return c.hold(ctx, r, false, o.by, o.why)
		},
	}
}

func (o *requestOptions) resume() change {
	return change{
		verb: "resume", refused: event.NotResumed,
		made: func(r *workload.Record, _ time.Time) string {
			if r.Hold != nil {
				return ""
			}
			if r.Reason != nil && r.Reason.Kind == workload.ReasonHeld { // such as its queue
				return "is not held by itself; " + r.Reason.Message
			}
			return "is not held"
		},
		ask: func(ctx context.Context, c *connection, r workload.Record) error {
			return c.hold(ctx, r, true, o.by, o.why)
		},
	}
}
