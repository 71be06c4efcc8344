package cli

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/program"
)

func priorityCommand(s *server) *cobra.Command {
	o := &requestOptions{server: s}
	cmd := &cobra.Command{
		Use:   "priority NAME|ID VALUE",
		Short: "Set the priority of a waiting or running workload",
		Long: `Set the priority of a waiting or running workload. This command is for operators, and
no limit of the queue applies.

A higher value comes first. The order of the queue follows at once, and so does
preemption: whom the workload may have evicted, and for whom it may be. It keeps its
place by submission among workloads of the same priority.

The workload's history and the recorded inputs show who asked, when and why.`,
		Example: "  muster priority fine-tune 500 --why \"the deadline is Friday\"\n  muster priority fine-tune -- -10",
		Args:    program.Args(2, 2, "one name or id, and a value"),
		RunE: func(cmd *cobra.Command, args []string) error {
			value, err := strconv.ParseInt(args[1], 10, 32)
			if err != nil {
				return exit.Usagef("priority %q: want a whole number from %d to %d", args[1], math.MinInt32, math.MaxInt32)
			}
			return o.run(cmd, args[0], o.priority(int32(value)))
		},
		ValidArgsFunction: completeWorkloads(s, true),
	}
	o.addFlags(cmd)
	return cmd
}

func (o *requestOptions) priority(value int32) change {
	return change{
		verb: "set the priority of", refused: event.NotRanked,
		made: func(r *workload.Record, _ time.Time) string {
			if r.Priority != value {
				return ""
			}
			return fmt.Sprintf("has the priority %d", value)
		},
		ask: func(ctx context.Context, c *connection, r workload.Record) error {
			return c.setPriority(ctx, r, value, o.by, o.why)
		},
	}
}
