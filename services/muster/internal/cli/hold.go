package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/policyfile/kueue"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/program"
)

// holdOptions are the flags of "hold queue" and "resume queue".
type holdOptions struct {
	server    *server
	namespace string
	why, by   string
}

func holdCommand(s *server) *cobra.Command {
	o := &holdOptions{server: s}
	queue := &cobra.Command{
		Use: "queue NAME", Short: "Stop the admissions of a queue until it is resumed",
		Long: `Stop the admissions of a queue, in all of its namespaces, until "muster resume
queue". Admitted workloads continue; submissions are accepted and wait. The reason of
each waiting workload says who holds the queue, since when and why.

To hold a queue by its manifest, set stopPolicy: Hold in its ClusterQueue or
LocalQueue; to evict its admitted workloads, too, set HoldAndDrain.`,
		Example: `  muster hold queue research --why "new driver on Monday"`,
		Args:    program.Args(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, names []string) error {
			return o.change(cmd, names[0], o.hold)
		},
		ValidArgsFunction: completeQueues(s),
	}
	queue.Flags().StringVar(&o.why, "why", "", "the `reason`, shown with the waiting workloads")
	queue.Flags().StringVar(&o.by, "by", account(), "`who` holds the queue, shown with the waiting workloads")
	return group("hold", "Stop the admissions of a queue, or of one workload", queue, holdWorkloadCommand(s))
}

func resumeCommand(s *server) *cobra.Command {
	o := &holdOptions{server: s}
	queue := &cobra.Command{
		Use: "queue NAME", Short: "Admit workloads of a held queue again",
		Args: program.Args(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, names []string) error {
			return o.change(cmd, names[0], o.resume)
		},
		ValidArgsFunction: completeQueues(s),
	}
	return group("resume", "Resume the admissions of a held queue or workload", queue, resumeWorkloadCommand(s))
}

// group is a command with one subcommand for each kind of object.
func group(name, short string, kinds ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: name, Short: short, Args: program.NoSuchCommand,
		Annotations: program.Hint("want `muster " + name + " queue NAME` or `muster " + name + " workload NAME`"),
		RunE:        func(*cobra.Command, []string) error { return exit.Usagef("%s: want queue NAME or workload NAME", name) },
	}
	cmd.AddCommand(kinds...)
	return cmd
}

// change looks the queue up and changes its hold.
func (o *holdOptions) change(cmd *cobra.Command, name string,
	change func(ctx context.Context, cmd *cobra.Command, client *query.Client, q query.Queue) error,
) error {
	return o.server.ask(cmd.Context(), func(ctx context.Context, client *query.Client) error {
		answer, err := client.Queues(ctx)
		if err != nil {
			return err
		}
		q, err := findQueue(answer.Queues, name, o.namespace)
		if err != nil {
			return err
		}
		err = change(ctx, cmd, client, q)
		var refused *query.ProblemError
		if errors.As(err, &refused) {
			return exit.With(exit.Rejected, fmt.Errorf("%s queue %s: %w", cmd.Parent().Name(), name, err))
		}
		return err
	})
}

func (o *holdOptions) hold(ctx context.Context, cmd *cobra.Command, client *query.Client, q query.Queue) error {
	if q.Hold != nil {
		fmt.Fprintf(cmd.OutOrStdout(), "unchanged: %s\n", q.Hold.Message())
		return nil
	}
	manifest, err := json.Marshal(map[string]any{
		"apiVersion": "muster.dev/v1beta1", "kind": kueue.QueueHold, "metadata": map[string]string{"name": q.Name},
		"spec": map[string]string{"since": time.Now().UTC().Format(time.RFC3339), "by": o.by, "why": o.why},
	})
	if err != nil {
		return fmt.Errorf("write the hold of queue %s: %w", q.Name, err)
	}
	if _, err := client.Configure(ctx, "", query.ConfigureRequest{Apply: []json.RawMessage{manifest}}); err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "queue %s is held: %d workloads wait, %d continue\n", q.Name, q.Waiting, q.Live)
	return nil
}

func (o *holdOptions) resume(ctx context.Context, cmd *cobra.Command, client *query.Client, q query.Queue) error {
	key := kueue.Key{Kind: kueue.QueueHold, Name: q.Name}
	answer, err := client.Configure(ctx, "", query.ConfigureRequest{Delete: []kueue.Key{key}})
	if err != nil {
		return err
	}
	if len(answer.Objects) == 1 && answer.Objects[0].Outcome == query.Deleted {
		fmt.Fprintf(cmd.OutOrStdout(), "queue %s is resumed\n", q.Name)
	} else {
		fmt.Fprintf(cmd.OutOrStdout(), "unchanged: no operator holds queue %s\n", q.Name)
	}
	if q.StopPolicy != "" && q.StopPolicy != quota.StopNone {
		fmt.Fprintf(cmd.ErrOrStderr(), "Warning: queue %s stays held by stopPolicy %s of its ClusterQueue or LocalQueue; change that manifest.\n", q.Name, q.StopPolicy)
	}
	return nil
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
