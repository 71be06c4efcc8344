package cli

import (
	"context"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/services/internal/client/output"
	"muster.dev/muster/services/internal/client/program"
)

// policyCommands are those that list what the policy consists of.
func (o *getOptions) policyCommands() []*cobra.Command {
	return []*cobra.Command{
		{
			Use: "clusterqueues", Aliases: []string{"clusterqueue", "cq"}, Short: "List ClusterQueues by cohort, with their queues and quota",
			Args: program.Args(0, 0, "no argument"), RunE: o.listClusterQueues,
		},
		{
			Use: "cohorts", Aliases: []string{"cohort"}, Short: "List the tree of cohorts and their ClusterQueues, with quota and share",
			Args: program.Args(0, 0, "no argument"), RunE: o.cohorts,
		},
		{
			Use: "flavors", Aliases: []string{"flavor", "resourceflavors"}, Short: "List ResourceFlavors",
			Args: program.Args(0, 0, "no argument"), RunE: o.flavors,
		},
		{
			Use: "priorityclasses", Aliases: []string{"priorityclass", "workloadpriorityclasses"}, Short: "List WorkloadPriorityClasses, the highest first",
			Args: program.Args(0, 0, "no argument"), RunE: o.priorityClasses,
		},
	}
}

func (o *getOptions) listClusterQueues(cmd *cobra.Command, _ []string) error {
	return o.show(cmd, func(ctx context.Context, client *query.Client) (any, func(output.Format) output.Table, error) {
		answer, err := client.Queues(ctx)
		all := clusterQueues(answer)
		return all, func(output.Format) output.Table { return output.ClusterQueues(all) }, err
	})
}

func (o *getOptions) cohorts(cmd *cobra.Command, _ []string) error {
	return o.show(cmd, func(ctx context.Context, client *query.Client) (any, func(output.Format) output.Table, error) {
		answer, err := client.Queues(ctx)
		return answer.Cohorts, func(output.Format) output.Table {
			return output.Cohorts(answer.Cohorts, clusterQueues(answer))
		}, err
	})
}

func (o *getOptions) flavors(cmd *cobra.Command, _ []string) error {
	return o.show(cmd, func(ctx context.Context, client *query.Client) (any, func(output.Format) output.Table, error) {
		answer, err := client.Queues(ctx)
		return answer.Flavors, func(output.Format) output.Table { return output.Flavors(answer.Flavors) }, err
	})
}

func (o *getOptions) priorityClasses(cmd *cobra.Command, _ []string) error {
	return o.show(cmd, func(ctx context.Context, client *query.Client) (any, func(output.Format) output.Table, error) {
		answer, err := client.Queues(ctx)
		return answer.PriorityClasses, func(output.Format) output.Table { return output.PriorityClasses(answer.PriorityClasses) }, err
	})
}

// clusterQueues returns the ClusterQueues of an answer. A tenant's answer has none, and shows
// them by his queues.
func clusterQueues(answer query.QueuesAnswer) []query.ClusterQueue {
	if len(answer.ClusterQueues) > 0 {
		return answer.ClusterQueues
	}
	return query.ClusterQueuesOf(nil, answer.Queues)
}
