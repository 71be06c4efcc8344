package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/program"
)

// clusterOptions are the flags of "cluster".
type clusterOptions struct {
	server  *server
	why, by string
}

func clusterCommand(s *server) *cobra.Command {
	o := &clusterOptions{server: s}
	cordon := &cobra.Command{
		Use: "cordon NAME", Short: "Admit nothing in a cluster until it is uncordoned",
		Long: `Admit nothing in a cluster until "muster cluster uncordon". Workloads that run there
continue. The reasons of those that wait and could start there only name who cordoned it,
since when and why.`,
		Example: `  muster cluster cordon east --why "new switches on Monday"`,
		RunE: func(cmd *cobra.Command, names []string) error {
			return o.change(cmd, query.HoldRequest{Cluster: names[0]})
		},
	}
	drain := &cobra.Command{
		Use: "drain NAME", Short: "Cordon a cluster and evict its workloads, which start again in others",
		Long: `Cordon a cluster, and evict its workloads, those of the highest priority first. Each has
its checkpoint grace, and then waits at its place by submission for another cluster. An
object that was made with kubectl stays in its cluster, and waits until that is uncordoned.`,
		Example: `  muster cluster drain east --why "it goes back to the vendor"`,
		RunE: func(cmd *cobra.Command, names []string) error {
			return o.change(cmd, query.HoldRequest{Cluster: names[0], Drain: true})
		},
	}
	uncordon := &cobra.Command{
		Use: "uncordon NAME", Short: "Admit workloads in a cordoned or drained cluster again",
		RunE: func(cmd *cobra.Command, names []string) error {
			return o.change(cmd, query.HoldRequest{Cluster: names[0], Resume: true})
		},
	}
	cmd := &cobra.Command{
		Use: "cluster", Short: "Have clusters join and leave; list, describe, cordon and drain them", Args: program.NoSuchCommand,
		Annotations: program.Hint("want `muster cluster list`, or describe, join, cordon, drain, uncordon or leave with a NAME"),
		RunE: func(*cobra.Command, []string) error {
			return exit.Usagef("cluster: want list, or describe, join, cordon, drain, uncordon or leave with a NAME")
		},
	}
	cmd.AddCommand(clusterListCommand(s), clusterDescribeCommand(s), joinCommand(s), leaveCommand(s))
	for _, c := range []*cobra.Command{cordon, drain, uncordon} {
		c.Args, c.ValidArgsFunction = program.Args(1, 1, "one name"), completeClusters(s)
		if c != uncordon {
			c.Flags().StringVar(&o.why, "why", "", "the `reason`, shown with the waiting workloads")
			c.Flags().StringVar(&o.by, "by", account(), "`who` asks for it, shown with the waiting workloads")
		}
		cmd.AddCommand(c)
	}
	return cmd
}

// change cordons, drains or uncordons a cluster that is known.
func (o *clusterOptions) change(cmd *cobra.Command, r query.HoldRequest) error {
	return o.server.ask(cmd.Context(), func(ctx context.Context, client *query.Client) error {
		return o.changeIn(ctx, client, cmd, r)
	})
}

func (o *clusterOptions) changeIn(ctx context.Context, client *query.Client, cmd *cobra.Command, r query.HoldRequest) error {
	c, err := findCluster(ctx, client, r.Cluster)
	if err != nil {
		return err
	}
	if c.Cordon != nil && c.Cordon.Left {
		return exit.With(exit.Rejected, fmt.Errorf("%s cluster %s: it has left; `muster cluster join %s` has it back", cmd.Name(), c.Name, c.Name))
	}
	if c.Cordon == nil && r.Resume || c.Cordon != nil && !r.Resume && c.Cordon.Drain == r.Drain {
		fmt.Fprintf(cmd.OutOrStdout(), "unchanged: %s\n", cordonText(c))
		return nil
	}
	r.By, r.Why = o.by, o.why
	change, err := r.ConfigureRequest(time.Now())
	if err != nil {
		return err
	}
	if _, err := client.Configure(ctx, "", change); err != nil {
		return refusedCluster(cmd.Name(), r.Cluster, err)
	}
	switch {
	case r.Resume:
		fmt.Fprintf(cmd.OutOrStdout(), "cluster %s is uncordoned\n", r.Cluster)
	case r.Drain:
		fmt.Fprintf(cmd.OutOrStdout(), "cluster %s is drained: %d workloads are evicted\n", r.Cluster, c.Live)
	default:
		fmt.Fprintf(cmd.OutOrStdout(), "cluster %s is cordoned: %d workloads continue\n", r.Cluster, c.Live)
	}
	return nil
}

func cordonText(c query.ClusterStatus) string {
	if c.Cordon == nil {
		return "no operator cordons cluster " + c.Name
	}
	return c.Cordon.Message()
}

// findCluster returns a cluster that has reported nodes or is described.
func findCluster(ctx context.Context, client *query.Client, name string) (query.ClusterStatus, error) {
	answer, err := client.Status(ctx)
	if err != nil {
		return query.ClusterStatus{}, err
	}
	return clusterOf(answer, name)
}

func clusterOf(answer query.StatusAnswer, name string) (query.ClusterStatus, error) {
	for _, c := range answer.Clusters {
		if c.Name == name {
			return c, nil
		}
	}
	return query.ClusterStatus{}, exit.NotFoundf("there is no cluster %q; `muster get clusters` lists them", name)
}

// completeClusters offers the names of clusters.
func completeClusters(s *server) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
		var names []string
		if len(given) == 0 {
			_ = s.ask(cmd.Context(), func(ctx context.Context, client *query.Client) error { // without a server there is nothing to offer
				answer, err := client.Status(ctx)
				for _, c := range answer.Clusters {
					names = append(names, c.Name)
				}
				return err
			})
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
