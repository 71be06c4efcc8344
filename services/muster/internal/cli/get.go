package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/query"
	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/services/muster/internal/output"
)

// getOptions are the flags of "get".
type getOptions struct {
	server    *server
	output    string
	queue     string
	namespace string
	phases    []string
}

func getCommand(s *server) *cobra.Command {
	o := &getOptions{server: s}
	cmd := &cobra.Command{
		Use:   "get",
		Short: "List workloads, queues or nodes",
		Args:  noSuchCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return usage("say what: workloads, queues or nodes") },
	}
	cmd.PersistentFlags().StringVarP(&o.output, "output", "o", string(output.Plain), "`format`: table, wide, json or yaml")
	completeFlag(cmd, "output", fixed([]output.Format{output.Plain, output.Wide, output.JSON, output.YAML}))

	workloads := &cobra.Command{
		Use: "workloads [NAME|ID]", Aliases: []string{"workload", "wl"}, Short: "List workloads in the order of submission",
		Example: "  muster get workloads --queue default --phase queued,running\n  muster get wl -o wide",
		Args:    args(0, 1, "at most one name"), RunE: o.workloads,
		ValidArgsFunction: completeWorkloads(s, false),
	}
	flags := workloads.Flags()
	flags.StringVarP(&o.queue, "queue", "q", "", "only those of this `queue`")
	flags.StringVarP(&o.namespace, "namespace", "n", "", "only those of this `namespace`")
	flags.StringSliceVar(&o.phases, "phase", nil, "only those in these `phases`")
	completeFlag(workloads, "phase", fixed(workload.Phases()))
	cmd.AddCommand(workloads,
		&cobra.Command{
			Use: "queues [NAME]", Aliases: []string{"queue", "q"}, Short: "List queues",
			Args: args(0, 1, "at most one name"), RunE: o.queues,
		},
		&cobra.Command{
			Use: "nodes [NAME]", Aliases: []string{"node", "no"}, Short: "List nodes and what is free on them",
			Args: args(0, 1, "at most one name"), RunE: o.nodes,
		})
	return cmd
}

// show asks and prints in the chosen format.
func (o *getOptions) show(cmd *cobra.Command, ask func(context.Context, *query.Client) (any, func(output.Format) output.Table, error)) error {
	format, err := output.ParseFormat(o.output)
	if err != nil {
		return usage("%w", err)
	}
	return o.server.ask(cmd.Context(), func(ctx context.Context, client *query.Client) error {
		value, table, err := ask(ctx, client)
		if err != nil {
			return err
		}
		return output.Print(cmd.OutOrStdout(), format, value, func() output.Table { return table(format) })
	})
}

func (o *getOptions) workloads(cmd *cobra.Command, names []string) error {
	phases, err := parsePhases(o.phases)
	if err != nil {
		return err
	}
	return o.show(cmd, func(ctx context.Context, client *query.Client) (any, func(output.Format) output.Table, error) {
		if len(names) == 1 {
			one, err := findWorkload(ctx, client, names[0], o.namespace)
			return one, func(f output.Format) output.Table {
				return output.Workloads([]workload.Record{one}, f, time.Now())
			}, err
		}
		records, err := everyWorkload(ctx, client, query.WorkloadsRequest{Namespace: o.namespace, Queue: o.queue, Phases: phases})
		return query.WorkloadsAnswer{Workloads: records}, func(f output.Format) output.Table {
			return output.Workloads(records, f, time.Now())
		}, err
	})
}

func parsePhases(names []string) ([]workload.Phase, error) {
	var phases []workload.Phase
	for _, name := range names {
		phase := workload.Phase(name)
		if !slices.Contains(workload.Phases(), phase) {
			var known []string
			for _, p := range workload.Phases() {
				known = append(known, string(p))
			}
			return nil, usage("phase %q: want %s", name, strings.Join(known, ", "))
		}
		phases = append(phases, phase)
	}
	return phases, nil
}

func (o *getOptions) queues(cmd *cobra.Command, names []string) error {
	return o.show(cmd, func(ctx context.Context, client *query.Client) (any, func(output.Format) output.Table, error) {
		answer, err := client.Queues(ctx)
		if err != nil {
			return nil, nil, err
		}
		var value any = answer
		if len(names) == 1 {
			answer.Queues = slices.DeleteFunc(answer.Queues, func(q query.Queue) bool { return q.Name != names[0] })
			if len(answer.Queues) == 0 {
				return nil, nil, notFound("there is no queue %q", names[0])
			}
			value = answer.Queues[0]
		}
		return value, func(f output.Format) output.Table { return output.Queues(answer.Queues, f) }, nil
	})
}

func (o *getOptions) nodes(cmd *cobra.Command, names []string) error {
	return o.show(cmd, func(ctx context.Context, client *query.Client) (any, func(output.Format) output.Table, error) {
		answer, err := client.Nodes(ctx)
		if err != nil {
			return nil, nil, err
		}
		var value any = answer
		if len(names) == 1 {
			node, err := findNode(answer.Nodes, names[0])
			if err != nil {
				return nil, nil, err
			}
			value, answer.Nodes = node, []query.Node{node}
		}
		return value, func(f output.Format) output.Table { return output.Nodes(answer.Nodes, f) }, nil
	})
}

// findNode returns the node of a name, or of "cluster/name".
func findNode(nodes []query.Node, name string) (query.Node, error) {
	var found []query.Node
	var clusters []string
	for _, n := range nodes {
		if n.Name == name || n.Cluster+"/"+n.Name == name {
			found = append(found, n)
			clusters = append(clusters, n.Cluster)
		}
	}
	switch len(found) {
	case 0:
		return query.Node{}, notFound("there is no node %q", name)
	case 1:
		return found[0], nil
	}
	return query.Node{}, usage("%q is the name of nodes in clusters %s; give it as %s",
		name, strings.Join(clusters, ", "), fmt.Sprintf("%s/%s", clusters[0], name))
}
