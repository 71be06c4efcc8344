package cli

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/output"
)

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
		return value, func(f output.Format) output.Table { return output.Nodes(answer.Nodes, f, time.Now()) }, nil
	})
}

func (o *getOptions) demand(cmd *cobra.Command, _ []string) error {
	return o.show(cmd, func(ctx context.Context, client *query.Client) (any, func(output.Format) output.Table, error) {
		answer, err := client.Demand(ctx)
		return answer, func(f output.Format) output.Table { return output.Demand(answer.Demand, f, time.Now()) }, err
	})
}

func (o *getOptions) clusters(cmd *cobra.Command, names []string) error {
	return o.show(cmd, func(ctx context.Context, client *query.Client) (any, func(output.Format) output.Table, error) {
		answer, err := client.Status(ctx)
		if err != nil {
			return nil, nil, err
		}
		clusters := answer.Clusters
		if len(names) == 1 {
			clusters = slices.DeleteFunc(clusters, func(c query.ClusterStatus) bool { return c.Name != names[0] })
			if len(clusters) == 0 {
				return nil, nil, exit.NotFoundf("there is no cluster %q; `muster get clusters` lists them", names[0])
			}
		}
		return clusters, func(output.Format) output.Table { return output.Clusters(clusters, answer.At) }, nil
	})
}
