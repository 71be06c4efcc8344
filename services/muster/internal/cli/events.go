package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/follow"
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

// print writes events until the last one that there is, or until ctx ends.
func (o *eventsOptions) print(ctx context.Context, following *bus.Following, out io.Writer) error {
	caughtUp := following.CaughtUp
	if o.follow {
		caughtUp = nil
	}
	var duplicates bus.Duplicates
	for {
		select {
		case <-ctx.Done():
			return nil // the user has seen enough
		case d := <-following.C:
			if duplicates.Seen(d) {
				continue
			}
			if err := o.printOne(d, out); err != nil {
				return err
			}
		case <-caughtUp:
			if len(following.C) == 0 {
				return nil
			}
		}
	}
}

// printAll writes events until there are no more.
func (o *eventsOptions) printAll(heard <-chan bus.Delivery, out io.Writer) error {
	for d := range heard {
		if err := o.printOne(d, out); err != nil {
			return err
		}
	}
	return nil
}

func (o *eventsOptions) printOne(d bus.Delivery, out io.Writer) error {
	step, err := follow.Read(d)
	if err == nil && o.elsewhere(&step.Record) {
		return nil
	}
	if o.output.Data() {
		return o.printData(d.Data, out)
	}
	if _, payload, _ := d.Event(); err != nil {
		line := fmt.Sprintf("(cannot be shown: %v)", err)
		switch p := payload.(type) {
		case *event.RequestWaits:
			line = output.Cell(fmt.Sprintf("%-10s  workload %s: %s", p.Queue, p.Workload, p.Message))
		case *event.BudgetUsedUp:
			if o.namespace != "" && p.Namespace != "" && p.Namespace != o.namespace {
				return nil
			}
			line = output.Cell(fmt.Sprintf("%-10s  %s", p.Queue, p.Message))
		case *event.ClusterChanged:
			line = output.Cell(fmt.Sprintf("cluster %s is %s, was %s; workloads with places there: %d", p.Cluster, p.State, p.Was, p.Live))
		}
		_, err = fmt.Fprintf(out, "%s  %s\n", d.Stored.Local().Format(time.DateTime), line)
		return err
	}
	return printStep(step, out)
}

// elsewhere reports whether a workload is of another namespace than the chosen one. That of a
// rejected one is not known, unless it has the id of the chosen workload.
func (o *eventsOptions) elsewhere(r *workload.Record) bool {
	return o.namespace != "" && r.Namespace != o.namespace && !(r.Namespace == "" && o.workload != "")
}

// printStep writes a step as a line.
func printStep(step follow.Step, out io.Writer) error {
	r := &step.Record
	name := reference(r.Workload)
	if r.Name == "" {
		name = "workload " + string(r.ID)
	}
	line := fmt.Sprintf("%s  %-10s  %-10s  %s", step.At.Local().Format("2006-01-02 15:04:05.000"), r.Queue, output.Phase(r), name)
	if reason := output.Reason(r.Reason); reason != "" {
		line += "  " + reason
	}
	_, err := fmt.Fprintln(out, output.Cell(line))
	return err
}

// printData writes an event as it is: one line of JSON, a document of YAML, or what an expression finds in it.
func (o *eventsOptions) printData(data []byte, out io.Writer) error {
	var compact json.RawMessage
	if err := json.Unmarshal(data, &compact); err != nil {
		return fmt.Errorf("print an event: its data is not JSON: %w", err)
	}
	if o.output == output.JSON {
		return json.NewEncoder(out).Encode(compact)
	}
	if o.output == output.YAML {
		if _, err := fmt.Fprintln(out, "---"); err != nil {
			return err
		}
	}
	return output.Print(out, o.output, compact, nil)
}
