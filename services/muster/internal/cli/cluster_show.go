package cli

import (
	"context"
	"io"

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
		Use: "describe NAME", Short: "Show the state, labels, prices and queues of a cluster, and the workloads with places in it",
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

// placedIn lists the workloads that hold places in a cluster, in the order of submission.
func placedIn(ctx context.Context, client *query.Client, cluster string) ([]workload.Record, error) {
	records, err := everyWorkload(ctx, client, query.WorkloadsRequest{Phases: workload.Phases()})
	if err != nil {
		return nil, err
	}
	var there []workload.Record
	for _, r := range records {
		if r.Cluster == cluster && (r.Holding || !r.Phase.Final() && r.Phase != workload.Queued) {
			there = append(there, r)
		}
	}
	return there, nil
}
