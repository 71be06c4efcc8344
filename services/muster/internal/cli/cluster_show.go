package cli

import (
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/output"
	"muster.dev/muster/services/internal/client/program"
)

func clusterListCommand(s *server) *cobra.Command {
	o := &getOptions{server: s}
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List clusters, their states, and when each reported last",
		Args: program.Args(0, 0, "no argument"), RunE: o.clusters,
	}
	program.AddOutput(cmd, cmd.Flags(), &o.output)
	cmd.Flags().BoolVar(&o.noHeaders, "no-headers", false, "print the table without its header")
	return cmd
}

func clusterDescribeCommand(s *server) *cobra.Command {
	o := &describeOptions{server: s}
	cmd := &cobra.Command{
		Use: "describe NAME", Short: "Show the state, labels, prices, queues and flavors of a cluster, and the workloads with places in it",
		Args: program.Args(1, 1, "one name"), RunE: o.cluster, ValidArgsFunction: completeClusters(s),
	}
	program.AddOutput(cmd, cmd.Flags(), &o.output)
	return cmd
}

func (o *describeOptions) cluster(cmd *cobra.Command, names []string) error {
	return o.show(cmd, func(ctx context.Context, client *query.Client) (any, func(io.Writer) error, error) {
		answer, err := client.Status(ctx)
		if err != nil {
			return nil, nil, err
		}
		c, err := clusterOf(answer, names[0])
		if err != nil {
			return nil, nil, err
		}
		d := output.Cluster{ClusterStatus: c}
		if d.Workloads, err = placedIn(ctx, client, c.Name); err != nil {
			return nil, nil, err
		}
		return d, func(w io.Writer) error { return output.DescribeCluster(w, d, answer.At) }, nil
	})
}

// placedIn lists the workloads that hold places in a cluster and have not ended, in the order
// of submission. Those that have ended, of which there may be any number, are not read: their
// pods hold places for a moment only.
func placedIn(ctx context.Context, client *query.Client, cluster string) ([]workload.Record, error) {
	phases := slices.DeleteFunc(workload.Phases(), func(p workload.Phase) bool { return p.Final() || p == workload.Queued })
	records, err := everyWorkload(ctx, client, query.WorkloadsRequest{Phases: phases})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(records, func(r workload.Record) bool { return r.Cluster != cluster }), nil
}
