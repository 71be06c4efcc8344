package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/output"
	"muster.dev/muster/services/internal/client/program"
	"muster.dev/muster/services/internal/client/times"
)

// eventsOptions are the flags of "events".
type eventsOptions struct {
	server          *server
	follow, fresh   bool
	queue, workload string
	since           string
	namespaces
	output output.Format
}

func eventsCommand(s *server) *cobra.Command {
	o := &eventsOptions{server: s}
	cmd := &cobra.Command{
		Use:   "events",
		Short: "Show the events of workloads, oldest first",
		Long: `Show the events of workloads, oldest first. -o json and -o yaml show the
CloudEvents unchanged: one per line, or one per document. --since takes a time of
RFC 3339, a date of UTC, or how long ago it is, such as 24h or 7d.

Over HTTP the command shows the events of the workloads that you may see: those since a
time, or with --follow the last and the following ones. -o json and -o yaml show their
data.`,
		Example: `  muster events --follow
  muster events --since 1h
  muster events --workload glue -o json
  muster events --new --queue research`,
		Args: program.Args(0, 0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	flags := cmd.Flags()
	flags.BoolVarP(&o.follow, "follow", "f", false, "show new events as they arrive")
	flags.StringVar(&o.since, "since", "", "show only events from this `time` on (default: all that are kept)")
	flags.BoolVar(&o.fresh, "new", false, "show only new events, which a tenant of the --queue may read; events are missed while the connection is lost")
	flags.StringVarP(&o.queue, "queue", "q", "", "only workloads of this `queue`")
	flags.StringVarP(&o.workload, "workload", "w", "", "only this workload, by `name` or id")
	o.addFlags(flags, "only workloads of this `namespace`, without rejections, of which it is not known")
	program.AddOutput(cmd, flags, &o.output)
	program.CompleteFlag(cmd, "workload", completeWorkloads(s, false))
	return cmd
}

func (o *eventsOptions) run(cmd *cobra.Command) error {
	if o.queue != "" && !workload.ValidName(o.queue) {
		return exit.Usagef("queue %q: want a name of at most 63 lower-case letters, digits and dashes", o.queue)
	}
	if err := o.check(); err != nil {
		return err
	}
	since, err := o.begin(time.Now())
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	if web, err := o.server.overHTTP(); err != nil {
		return err
	} else if web != nil {
		return o.overWeb(ctx, web, since, cmd.OutOrStdout())
	}
	b, err := o.server.connect(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	subject, err := o.subject(ctx, b)
	if err != nil {
		return err
	}
	replay, stop := context.WithCancel(ctx)
	defer stop()
	if o.fresh {
		heard, err := b.Listen(replay, subject)
		if err != nil {
			return err
		}
		return o.printAll(heard, cmd.OutOrStdout())
	}
	following, err := b.ReplaySince(replay, bus.EventsStream, since, subject)
	if err != nil {
		return err
	}
	return o.print(ctx, following, cmd.OutOrStdout())
}

// begin is the time of the first event to show; zero for all that are kept.
func (o *eventsOptions) begin(now time.Time) (time.Time, error) {
	switch at, err := times.Parse(o.since, now); {
	case o.since == "":
		return time.Time{}, nil
	case o.fresh:
		return time.Time{}, exit.Usagef("--since and --new: want one of them; --new shows what comes from now on")
	case err != nil:
		return time.Time{}, exit.Usagef("--since %q: %s", o.since, times.Want)
	case at.After(now):
		return time.Time{}, exit.Usagef("--since %q: want a time before now; --new shows what comes from now on", o.since)
	default:
		return at, nil
	}
}

// subject selects the events.
func (o *eventsOptions) subject(ctx context.Context, b *bus.Bus) (string, error) {
	queue := o.queue
	if queue == "" {
		queue = "*"
	}
	if o.workload == "" {
		return event.EventsSubject(queue, "*"), nil
	}
	var record workload.Record
	err := answered(ctx, func(ctx context.Context) (err error) {
		record, err = findWorkload(ctx, query.NewClient(b.Conn()), o.workload, o.namespace)
		return err
	})
	return event.EventsSubject(record.Queue, record.ID), err
}
