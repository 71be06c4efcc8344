package cli

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/output"
	"muster.dev/muster/services/internal/client/program"
)

// getOptions are the flags of "get".
type getOptions struct {
	namespaces
	server   *server
	output   output.Format
	queue    string
	selector string
	phases   []string
	sortBy   string
	limit    int
	since    time.Duration
	watch    bool

	noHeaders bool
}

func getCommand(s *server) *cobra.Command {
	o := &getOptions{server: s}
	cmd := &cobra.Command{
		Use:         "get",
		Short:       "List workloads, queues and their policy, nodes, clusters, unmet demand, reservations, applied objects or dead letters",
		Args:        program.NoSuchCommand,
		Annotations: kindHints(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return exit.Usagef("get: want workloads, queues, clusterqueues, cohorts, flavors, priorityclasses, nodes, clusters, demand, reservations, applied or dead-letters")
		},
	}
	program.AddOutput(cmd, cmd.PersistentFlags(), &o.output)
	cmd.PersistentFlags().BoolVar(&o.noHeaders, "no-headers", false, "print tables without their header")

	cmd.AddCommand(o.policyCommands()...)
	cmd.AddCommand(o.workloadsCommand(), o.queuesCommand())
	cmd.AddCommand(o.clusterCommands()...)
	cmd.AddCommand(o.objectCommands()...)
	return cmd
}

func (o *getOptions) workloadsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "workloads [NAME|ID]", Aliases: []string{"workload", "wl"}, Short: "List workloads in the order of submission",
		Example: "  muster get workloads --queue default --phase queued,running\n  muster get wl --phase failed --since 24h --sort-by finished -o wide\n  muster get wl -l team=vision,stage!=test\n  muster get wl --queue research --watch",
		Args:    program.Args(0, 1, "at most one name"), RunE: o.workloads,
		ValidArgsFunction: completeWorkloads(o.server, false),
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.queue, "queue", "q", "", "only those of this `queue`")
	o.addFlags(flags, "only those of this `namespace`")
	flags.StringVarP(&o.selector, "selector", "l", "", selectorUsage)
	flags.StringSliceVar(&o.phases, "phase", nil, "only those in these `phases`")
	flags.StringVar(&o.sortBy, "sort-by", "", "sort by this `field` instead: "+strings.Join(sortFields(), ", "))
	flags.IntVar(&o.limit, "limit", 0, "only the last `number` of them")
	flags.DurationVar(&o.since, "since", 0, "only those submitted within this `time`, such as 24h")
	flags.BoolVarP(&o.watch, "watch", "w", false, "after the list, print a line for each change, until Ctrl-C; a terminal shows the list as it changes")
	program.CompleteFlag(cmd, "phase", program.FixedList(workload.Phases()))
	program.CompleteFlag(cmd, "sort-by", program.Fixed(sortFields()))
	return cmd
}

func (o *getOptions) queuesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "queues [NAME]", Aliases: []string{"queue", "q"}, Short: "List queues",
		Args: program.Args(0, 1, "at most one name"), RunE: o.queues,
		ValidArgsFunction: completeQueues(o.server),
	}
	o.addFlags(cmd.Flags(), "only those that serve this `namespace`")
	return cmd
}

// clusterCommands list nodes, clusters, and the demand for more.
func (o *getOptions) clusterCommands() []*cobra.Command {
	return []*cobra.Command{
		{
			Use: "nodes [NAME]", Aliases: []string{"node", "no"}, Short: "List nodes and what is free on them",
			Args: program.Args(0, 1, "at most one name"), RunE: o.nodes,
			ValidArgsFunction: completeNodes(o.server),
		},
		{
			Use: "clusters [NAME]", Aliases: []string{"cluster"}, Short: "List clusters, their states, and when each reported last",
			Args: program.Args(0, 1, "at most one name"), RunE: o.clusters, ValidArgsFunction: completeClusters(o.server),
		},
		{
			Use: "demand", Short: "List what waiting gangs lack that more nodes would give them",
			Long: `List the waiting gangs that are within quota and have no places on the nodes that
exist, equal ones together, with the pods of one gang. -o json has their selectors,
tolerations and topology, too.`,
			Args: program.Args(0, 0, "no argument"), RunE: o.demand,
		},
	}
}

// show asks the server and prints its answer in the chosen format.
func (o *getOptions) show(cmd *cobra.Command, ask func(context.Context, *query.Client) (any, func(output.Format) output.Table, error)) error {
	return o.server.ask(cmd.Context(), func(ctx context.Context, client *query.Client) error {
		value, table, err := ask(ctx, client)
		if err != nil {
			return err
		}
		return o.print(cmd, value, func() output.Table { return table(o.output) })
	})
}

func (o *getOptions) workloads(cmd *cobra.Command, names []string) error {
	picked, err := o.pick(names)
	if err != nil {
		return err
	}
	to := terminalOf(cmd.OutOrStdout())
	if o.watch && to != nil {
		return o.live(cmd, picked, names, to)
	}
	var watched *changes
	err = o.server.ask(cmd.Context(), func(ctx context.Context, client *query.Client) error {
		records, err := o.list(ctx, client, names, &picked)
		if err != nil {
			return err
		}
		if o.watch {
			watched, err = newChanges(cmd.OutOrStdout(), picked, o.output, records, o.noHeaders)
			return err
		}
		records = picked.of(records, time.Now())
		table := output.Workloads(records, o.output, time.Now())
		table.NoHeader = o.noHeaders
		if to != nil && !to.plain && !o.output.Data() && len(records) > 0 {
			var text strings.Builder
			columns, _ := to.size()
			if err := table.Write(output.Within(&text, columns), ""); err != nil {
				return err
			}
			_, err := io.WriteString(to, colored(text.String()))
			return err
		}
		var value any = query.WorkloadsAnswer{Workloads: records}
		if len(names) == 1 {
			value = records[0]
		}
		return o.print(cmd, value, func() output.Table { return table })
	})
	if err != nil || !o.watch {
		return err
	}
	web, err := o.server.overHTTP()
	if err != nil {
		return err
	}
	watched.replayed = web != nil
	return o.follow(cmd.Context(), picked, watched.step)
}

func (o *getOptions) queues(cmd *cobra.Command, names []string) error {
	if err := o.check(); err != nil {
		return err
	}
	return o.show(cmd, func(ctx context.Context, client *query.Client) (any, func(output.Format) output.Table, error) {
		answer, err := client.Queues(ctx)
		if err != nil {
			return nil, nil, err
		}
		var value any = answer
		if len(names) == 1 {
			one, err := findQueue(answer.Queues, names[0], o.namespace)
			if err != nil {
				return nil, nil, err
			}
			value, answer.Queues = one, []query.Queue{one}
		} else if o.namespace != "" {
			answer.Queues = slices.DeleteFunc(answer.Queues, func(q query.Queue) bool { return !slices.Contains(q.Namespaces, o.namespace) })
			value = answer
		}
		return value, func(f output.Format) output.Table { return output.Queues(answer.Queues, f) }, nil
	})
}
