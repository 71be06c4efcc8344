package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/program"
)

// cancelOptions are the flags of "cancel".
type cancelOptions struct {
	server                *server
	namespace, queue, why string
	selector              string
	labels                []query.LabelRequirement
	phases                []string
	all, wait             bool
	timeout               time.Duration
}

func cancelCommand(s *server) *cobra.Command {
	o := &cancelOptions{server: s}
	cmd := &cobra.Command{
		Use:   "cancel NAME|ID... | --all --queue QUEUE | --selector LABELS",
		Short: "End workloads in any phase, or all of a queue, namespace or label",
		Example: `  muster cancel fine-tune --wait
  muster cancel train-1 train-2
  muster cancel --all --queue research --phase queued --why "wrong image"
  muster cancel -l team=vision,stage=test --queue research`,
		Args: program.Args(0, -1, "names or ids, --all or --selector"),
		RunE: func(cmd *cobra.Command, names []string) error {
			return o.run(cmd, names)
		},
		ValidArgsFunction: completeAllOf(completeWorkloads(s, true)),
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.namespace, "namespace", "n", "", "the `namespace` of the workload, if its name is ambiguous; with --all or --selector, only those of this namespace")
	flags.BoolVar(&o.all, "all", false, "end every workload of --queue, --namespace and --phase")
	flags.StringVarP(&o.selector, "selector", "l", "", "end every workload whose manifest has such `labels`, as kubectl takes them: team=a,stage!=test")
	flags.StringVarP(&o.queue, "queue", "q", "", "with --all or --selector, only those of this `queue`")
	flags.StringSliceVar(&o.phases, "phase", nil, "with --all or --selector, only those in these `phases`")
	flags.StringVar(&o.why, "why", "", "the `reason`, stored with the workload")
	flags.BoolVar(&o.wait, "wait", false, "wait until the workload has ended")
	flags.DurationVar(&o.timeout, "timeout", 0, "how long --wait waits (default: no limit)")
	program.CompleteFlag(cmd, "phase", program.FixedList(unfinished()))
	return cmd
}

func (o *cancelOptions) run(cmd *cobra.Command, names []string) error {
	phases, err := parsePhases(o.phases)
	if err == nil {
		o.labels, err = parseSelector(o.selector)
	}
	o.all = o.all || len(o.labels) > 0
	switch {
	case err != nil:
		return err
	case cmd.Flags().Changed("timeout") && !o.wait:
		return exit.Usagef("--timeout %s is how long --wait waits; add --wait", o.timeout)
	case o.timeout < 0:
		return exit.Usagef("--timeout %s: want a positive duration", o.timeout)
	case o.all != (len(names) == 0) || !o.all && (o.queue != "" || len(phases) > 0):
		return exit.Usagef("want one name or id, or several, or --all with --queue or --namespace, or --selector")
	case o.all && o.queue == "" && o.namespace == "" && len(o.labels) == 0:
		return exit.Usagef("--all: want --queue or --namespace too")
	}
	ctx := cmd.Context()
	c, err := o.server.open(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	records, err := o.find(ctx, c, names, phases)
	if err != nil {
		return err
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	var waits []func() error
	out := program.Lines(cmd.OutOrStdout())
	for i := range records {
		wait, err := o.one(following, c, out, records[i])
		if err != nil {
			return err
		}
		waits = append(waits, wait)
	}
	return together(cmd.ErrOrStderr(), waits)
}

// find returns the workloads that are meant.
func (o *cancelOptions) find(ctx context.Context, c *connection, names []string, phases []workload.Phase) (records []workload.Record, err error) {
	if !o.all {
		for _, name := range names { // all of them before any is cancelled
			record, err := c.find(ctx, name, o.namespace)
			if err != nil {
				return nil, err
			}
			if !slices.ContainsFunc(records, func(r workload.Record) bool { return r.ID == record.ID }) {
				records = append(records, record)
			}
		}
		return records, nil
	}
	if len(phases) == 0 {
		phases = unfinished()
	}
	err = answered(ctx, func(ctx context.Context) error {
		records, err = everyWorkload(ctx, c.queries, query.WorkloadsRequest{Queue: o.queue, Namespace: o.namespace, Phases: phases, Labels: o.labels})
		if err == nil && len(records) == 0 {
			err = exit.NotFoundf("there is no such workload; `muster get workloads` lists them")
		}
		return err
	})
	return records, err
}

// one asks for the end of a workload, and returns how to wait for it.
func (o *cancelOptions) one(ctx context.Context, c *connection, out io.Writer, record workload.Record) (wait func() error, err error) {
	name := reference(record.Workload)
	nothing := func() error { return nil }
	if record.Phase.Final() {
		fmt.Fprintf(out, "%s has ended already: %s%s\n", name, record.Phase, keptObject(record.Workload))
		return nothing, nil
	}
	var steps life
	if o.wait {
		if steps, err = c.follow(ctx, record); err != nil {
			return nil, err
		}
	}
	if err := c.cancel(ctx, record, o.why); err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "%s is being cancelled (workload %s)\n", name, record.ID)
	if !o.wait {
		return nothing, nil
	}
	return func() error {
		return (&waiting{out: out, label: name, goal: gone, timeout: o.timeout}).until(ctx, steps)
	}, nil
}

// keptObject returns how to remove the object that is kept of an ended workload, to be read. An
// AppWrapper that was submitted to Muster is itself no object of a cluster.
func keptObject(w workload.Workload) string {
	if w.Kind == workload.KindAppWrapper {
		return ""
	}
	return fmt.Sprintf("; an object that is kept of it goes by: kubectl delete %s -n %s %s", strings.ToLower(w.Kind), w.Namespace, w.Name)
}
