package cli

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/output"
	"muster.dev/muster/services/internal/client/program"
)

// describeOptions are the flags of "describe".
type describeOptions struct {
	server    *server
	output    output.Format
	namespace string
}

func describeCommand(s *server) *cobra.Command {
	o := &describeOptions{server: s}
	cmd := &cobra.Command{
		Use:   "describe",
		Short: "Show details of a workload, queue or node",
		Args:  program.NoSuchCommand, Annotations: program.Hint("want `muster describe workload NAME`"),
		RunE: func(*cobra.Command, []string) error { return exit.Usagef("describe: want workload, queue or node") },
	}
	program.AddOutput(cmd, cmd.PersistentFlags(), &o.output)
	one := &cobra.Command{
		Use: "workload NAME|ID", Aliases: []string{"workloads", "wl"}, Short: "Show the pods, places, reason and history of a workload",
		Args: program.Args(1, 1, "one name or id"), RunE: o.workload, ValidArgsFunction: completeWorkloads(s, false),
	}
	one.Flags().StringVarP(&o.namespace, "namespace", "n", "", "the `namespace` of the workload, if its name is ambiguous")
	queue := &cobra.Command{
		Use: "queue NAME", Aliases: []string{"queues", "q"}, Short: "Show the settings of a queue and its workloads",
		Args: program.Args(1, 1, "one name"), RunE: o.queue,
		ValidArgsFunction: completeQueues(s),
	}
	queue.Flags().StringVarP(&o.namespace, "namespace", "n", "", "the `namespace` of the queue, if its name is ambiguous")
	cmd.AddCommand(one, queue,
		&cobra.Command{
			Use: "node NAME", Aliases: []string{"nodes", "no"}, Short: "Show what is free on a node, and the workloads with places on it",
			Args: program.Args(1, 1, "one name"), RunE: o.node,
			ValidArgsFunction: completeNodes(s),
		})
	return cmd
}

// show asks, and prints the answer as data or by describe.
func (o *describeOptions) show(cmd *cobra.Command, ask func(context.Context, *query.Client) (any, func(io.Writer) error, error)) error {
	return o.server.ask(cmd.Context(), func(ctx context.Context, client *query.Client) error {
		value, describe, err := ask(ctx, client)
		if err != nil {
			return err
		}
		if !o.output.Data() {
			return describe(cmd.OutOrStdout())
		}
		return output.Print(cmd.OutOrStdout(), o.output, value, nil)
	})
}

func (o *describeOptions) workload(cmd *cobra.Command, names []string) error {
	return o.show(cmd, func(ctx context.Context, client *query.Client) (any, func(io.Writer) error, error) {
		record, err := findWorkload(ctx, client, names[0], o.namespace)
		if err != nil {
			return nil, nil, err
		}
		history, err := client.History(ctx, query.HistoryRequest{ID: record.ID})
		if err != nil {
			return nil, nil, err
		}
		d := output.Workload{Record: record, History: history.Entries, Estimates: history.Estimates, Eviction: evictionOf(ctx, client, record)}
		return d, func(w io.Writer) error { return output.DescribeWorkload(w, d, time.Now()) }, nil
	})
}

// costTimeout bounds the wait for what an eviction would lose, which the leader knows.
const costTimeout = 2 * time.Second

// evictionOf asks what a workload would lose if it was evicted now; nil unless it has started, or
// when there is no answer.
func evictionOf(ctx context.Context, client *query.Client, record workload.Record) *workload.EvictionCost {
	if !record.Phase.Started() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, costTimeout)
	defer cancel()
	answer, err := client.Explain(ctx, query.ExplainRequest{ID: record.ID})
	if err != nil {
		return nil // all else is known without the leader
	}
	return answer.Eviction
}

// unfinished are the phases of workloads that wait or live.
func unfinished() []workload.Phase {
	return slices.DeleteFunc(workload.Phases(), workload.Phase.Final)
}

func (o *describeOptions) queue(cmd *cobra.Command, names []string) error {
	return o.show(cmd, func(ctx context.Context, client *query.Client) (any, func(io.Writer) error, error) {
		answer, err := client.Queues(ctx)
		if err != nil {
			return nil, nil, err
		}
		one, err := findQueue(answer.Queues, names[0], o.namespace)
		if err != nil {
			return nil, nil, err
		}
		records, err := everyWorkload(ctx, client, query.WorkloadsRequest{Queue: names[0], Namespace: only(one.Namespaces), Phases: unfinished()})
		if err != nil {
			return nil, nil, err
		}
		records = slices.DeleteFunc(records, func(r workload.Record) bool { return !slices.Contains(one.Namespaces, r.Namespace) })
		d := output.Queue{Queue: one, Workloads: records}
		return d, func(w io.Writer) error { return output.DescribeQueue(w, d, time.Now()) }, nil
	})
}

// only returns the namespace where there is but one, so that no others are asked for.
func only(namespaces []string) string {
	if len(namespaces) == 1 {
		return namespaces[0]
	}
	return ""
}

func (o *describeOptions) node(cmd *cobra.Command, names []string) error {
	return o.show(cmd, func(ctx context.Context, client *query.Client) (any, func(io.Writer) error, error) {
		answer, err := client.Nodes(ctx)
		if err != nil {
			return nil, nil, err
		}
		node, err := findNode(answer.Nodes, names[0])
		if err != nil {
			return nil, nil, err
		}
		records, err := everyWorkload(ctx, client, query.WorkloadsRequest{Phases: workload.Phases()})
		if err != nil {
			return nil, nil, err
		}
		d := output.Node{Node: node, Workloads: slices.DeleteFunc(records, func(r workload.Record) bool {
			return !placedOn(r, node)
		})}
		return d, func(w io.Writer) error { return output.DescribeNode(w, d, time.Now()) }, nil
	})
}

// placedOn reports whether the workload holds a place on the node.
func placedOn(r workload.Record, node query.Node) bool {
	if r.Cluster != node.Cluster || r.Phase.Final() && !r.Holding {
		return false
	}
	return slices.ContainsFunc(r.Placements, func(p workload.Placement) bool { return p.Node == node.Name })
}
