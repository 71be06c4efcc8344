package cli

import (
	"context"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/program"
)

// holdOptions are the flags of "hold" and "resume".
type holdOptions struct {
	server    *server
	namespace string
	all       bool // namespaces of a queue
	why, by   string
}

func holdCommand(s *server) *cobra.Command {
	o := &holdOptions{server: s}
	queue := &cobra.Command{
		Use: "queue NAME", Short: "Stop the admissions of a queue until it is resumed",
		Long: `Stop the admissions of a queue until "muster resume queue": of a LocalQueue with
--namespace, of all queues of the name with --all-namespaces. Neither is needed for a
name that only one queue has. Admitted workloads continue; submissions are accepted and
wait. The reason of each waiting workload shows who holds the queue, since when and why.

To hold a queue by its manifest, set stopPolicy: Hold in its ClusterQueue or
LocalQueue; to evict its admitted workloads, too, set HoldAndDrain.`,
		Example: `  muster hold queue research --why "new driver on Monday"
  muster hold queue user-queue --namespace team-a`,
		Args: program.Args(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, names []string) error {
			return o.queue(cmd, names[0], o.hold)
		},
		ValidArgsFunction: completeQueues(s),
	}
	clusterQueue := &cobra.Command{
		Use: "clusterqueue NAME", Aliases: []string{"cq"}, Short: "Stop the admissions of a ClusterQueue until it is resumed",
		Long: `Stop the admissions of all queues that lead to a ClusterQueue until "muster resume
clusterqueue". Admitted workloads continue; submissions are accepted and wait.`,
		Example: `  muster hold clusterqueue team-a-cq --why "new driver on Monday"`,
		Args:    program.Args(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, names []string) error {
			return o.clusterQueue(cmd, names[0], o.hold)
		},
		ValidArgsFunction: completeClusterQueues(s),
	}
	o.addNamespace(queue)
	for _, cmd := range []*cobra.Command{queue, clusterQueue} {
		cmd.Flags().StringVar(&o.why, "why", "", "the `reason`, shown with the waiting workloads")
		cmd.Flags().StringVar(&o.by, "by", account(), "`who` holds the queue, shown with the waiting workloads")
	}
	return group("hold", "Stop the admissions of a queue or ClusterQueue, or of one workload", queue, clusterQueue, holdWorkloadCommand(s))
}

func resumeCommand(s *server) *cobra.Command {
	o := &holdOptions{server: s}
	queue := &cobra.Command{
		Use: "queue NAME", Short: "Admit workloads of a held queue again",
		Args: program.Args(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, names []string) error {
			return o.queue(cmd, names[0], o.resume)
		},
		ValidArgsFunction: completeQueues(s),
	}
	o.addNamespace(queue)
	clusterQueue := &cobra.Command{
		Use: "clusterqueue NAME", Aliases: []string{"cq"}, Short: "Admit workloads of a held ClusterQueue again",
		Args: program.Args(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, names []string) error {
			return o.clusterQueue(cmd, names[0], o.resume)
		},
		ValidArgsFunction: completeClusterQueues(s),
	}
	return group("resume", "Resume the admissions of a held queue, ClusterQueue or workload", queue, clusterQueue, resumeWorkloadCommand(s))
}

func (o *holdOptions) addNamespace(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.namespace, "namespace", "n", "", "the `namespace` of the queue, if its name is ambiguous")
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "the queues of this name in all namespaces")
}

// group is a command with one subcommand for each kind of object.
func group(name, short string, kinds ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: name, Short: short, Args: program.NoSuchCommand,
		Annotations: program.Hint("want `muster " + name + " queue NAME`, `muster " + name + " clusterqueue NAME` or `muster " + name + " workload NAME`"),
		RunE: func(*cobra.Command, []string) error {
			return exit.Usagef("%s: want queue NAME, clusterqueue NAME or workload NAME", name)
		},
	}
	cmd.AddCommand(kinds...)
	return cmd
}

// completeQueues offers the names of queues.
func completeQueues(s *server) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
		var names []string
		if len(given) == 0 {
			_ = s.ask(cmd.Context(), func(ctx context.Context, client *query.Client) error { // without a server there is nothing to offer
				answer, err := client.Queues(ctx)
				names = queueNames(answer.Queues)
				return err
			})
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
