package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/program"
	"muster.dev/muster/services/internal/client/times"
)

func checkpointCommand(s *server) *cobra.Command {
	o, at, path, every := &requestOptions{server: s}, "", "", time.Duration(0)
	cmd := &cobra.Command{
		Use:   "checkpoint NAME|ID",
		Short: "Report that a running workload has saved its work",
		Long: `Report that a running workload has saved its work. Its eviction then loses only what
comes after that. Where its queue or its manifest declares a checkpoint interval, gangs
that lose less are evicted first.

Reports that are less than ten seconds apart count as one. A job that can annotate its
object, or the pod that it runs in, may set muster.dev/last-checkpoint instead.

With --written the command runs beside the job, until the workload has ended, and reports
a checkpoint each time that the job has written a file, such as the one that names its
latest checkpoint. What the file has at the beginning was saved before.

Over NATS this command is for operators. Over HTTP a submitter reports the checkpoints
of its own workloads.`,
		Example: "  muster checkpoint fine-tune\n  muster checkpoint fine-tune --at 2026-01-02T15:04:05Z\n" +
			"  muster checkpoint fine-tune --written /checkpoints/latest &",
		Args: program.Args(1, 1, "one name or id"),
		RunE: func(cmd *cobra.Command, names []string) error {
			switch {
			case path != "" && at != "":
				return exit.Usagef("--at and --written are both set; want one of them")
			case path == "" && cmd.Flags().Changed("every"):
				return exit.Usagef("--every is for --written, which has no file")
			case path != "":
				return o.reportWrites(cmd, names[0], path, every)
			}
			var saved time.Time // zero for the time at which queue-manager reads it: the clock here may be wrong
			if at != "" {
				var err error
				now := time.Now()
				if saved, err = times.Parse(at, now); err != nil || saved.After(now) {
					return exit.Usagef("--at %q: %s, not in the future", at, times.Want)
				}
			}
			return o.run(cmd, names[0], o.checkpoint(saved))
		},
		ValidArgsFunction: completeWorkloads(s, true),
	}
	o.addFlagsWithoutWhy(cmd)
	cmd.Flags().StringVar(&at, "at", "", "`when` it saved its work, if not now: a time, or how long ago")
	cmd.Flags().StringVar(&path, "written", "", "the `file` of which each write is a checkpoint")
	cmd.Flags().DurationVar(&every, "every", lookEvery, "how often to look at the file of --written")
	return cmd
}

// checkpoint reports that a workload has saved its work; a zero time is the present of
// queue-manager.
func (o *requestOptions) checkpoint(at time.Time) change {
	asked, before := false, time.Time{} // before is the last one before it is asked for
	return change{
		verb: "report a checkpoint of", refused: event.NotSaved,
		made: func(r *workload.Record, seen time.Time) string {
			last := r.Saved().Last(r.Attempt)
			reported := at
			if at.IsZero() { // it is queue-manager's time then
				reported = seen
			}
			near := !reported.IsZero() && reported.Sub(last) < workload.SavedApart
			switch {
			case last.IsZero(), event.IsRefusal(r.Reason):
				return ""
			case !asked && (at.IsZero() || !near):
				return ""
			// One that is too near to the last changes nothing, and queue-manager answers all the same.
			case asked && last.Equal(before) && !near && !(at.IsZero() && seen.IsZero()):
				return ""
			}
			return "has saved its work at " + last.UTC().Format(time.RFC3339)
		},
		ask: func(ctx context.Context, c *connection, r workload.Record) error {
			asked, before = true, r.Saved().Last(r.Attempt)
			return c.checkpoint(ctx, r, at, o.by)
		},
	}
}
