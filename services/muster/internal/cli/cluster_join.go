package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"muster.dev/muster/deploy/nats/access"
	"muster.dev/muster/deploy/nats/users"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/program"
)

// joinOptions are the flags of "cluster join".
type joinOptions struct {
	server       *server
	labels, cost map[string]string
	queues       []string
	flavors      []string
	keys         string
	namespaces   []string
	kubectl      []string
	address      string
}

func joinCommand(s *server) *cobra.Command {
	o := &joinOptions{server: s}
	cmd := &cobra.Command{
		Use: "join NAME", Short: "Describe a cluster that joins, and print the commands that install it",
		Long: `Describe a cluster that joins, and print the commands that install its capacity-watcher and
dispatcher there. Both connect to NATS; nothing connects to the cluster. Gangs go to it once
it reports nodes. The same name again has a cluster back that has left, or changes the
description: what no flag names stays, and an empty value, such as --labels "", removes it.

With --kubectl-queues the cluster gets an intake, too: what its users make there with kubectl, with
the label of one of these queues, is held and runs there.

With --keys, the directory that "go run ./deploy/compose" keeps, the command also makes the
keys of the cluster's NATS users, once, and writes accounts.conf for the NATS servers, which
then have to reload it.`,
		Example: `  muster cluster join west --labels tier=spot --cost-per-hour nvidia.com/gpu=1.2 --keys ./secrets \
    --address tls://nats.example:4222 --namespaces research`,
		Args: program.Args(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, names []string) error { return o.run(cmd, names[0]) },
	}
	flags := cmd.Flags()
	flags.StringToStringVar(&o.labels, "labels", nil, "the `labels` by which workloads select it")
	flags.StringToStringVar(&o.cost, "cost-per-hour", nil, "the `prices` of resources: of a core, a GiB, or one of everything else")
	flags.StringSliceVar(&o.queues, "queues", nil, "the `ClusterQueues` whose gangs it takes (default all)")
	flags.StringSliceVar(&o.flavors, "flavors", nil, "the `ResourceFlavors` that it offers (default all)")
	flags.StringVar(&o.keys, "keys", "", "the `directory` with the keys of the NATS users, to make those of the cluster")
	flags.StringSliceVar(&o.namespaces, "namespaces", []string{"default"}, "the `namespaces` of queues, for the printed command")
	flags.StringSliceVar(&o.kubectl, "kubectl-queues", nil, "the `queues` to which users of the cluster may submit with kubectl (default none); again without the flag they stay as they are")
	flags.StringVar(&o.address, "address", "", "the `URL` by which the cluster reaches NATS, such as tls://nats.example:4222, for the printed command")
	for _, name := range []string{"labels", "cost-per-hour"} {
		f := flags.Lookup(name)
		f.Value, f.DefValue = orNone{f.Value}, ""
	}
	return cmd
}

// orNone is a flag with pairs, which may be empty.
type orNone struct{ pflag.Value }

// Set implements pflag.Value.
func (f orNone) Set(text string) error {
	if text == "" {
		return nil
	}
	return f.Value.Set(text)
}

func (o *joinOptions) run(cmd *cobra.Command, name string) error {
	described, err := o.description(name)
	if err != nil {
		return err
	}
	var known users.Registry
	if o.keys != "" {
		if known, err = registryIn(o.keys); err != nil {
			return err
		}
	}
	var notes []string
	err = o.server.ask(cmd.Context(), func(ctx context.Context, client *query.Client) (err error) {
		notes, err = describeCluster(ctx, client, described, cmd.Flags().Changed)
		return err
	})
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "cluster %s is described\n", name)
	for _, note := range notes {
		fmt.Fprintf(cmd.ErrOrStderr(), "note: %s\n", note)
	}
	if o.keys != "" {
		if err := makeKeys(out, known, o.keys, name, o.kubectl); err != nil {
			return fmt.Errorf("join %s: make its keys in %s: %w", name, o.keys, err)
		}
	}
	o.printInstallation(out, name)
	return nil
}

// describeCluster has a cluster described, and returns what may be a mistake. Of a cluster that is
// described already it keeps what no flag names.
func describeCluster(ctx context.Context, client *query.Client, described quota.Cluster, given func(flag string) bool) (notes []string, err error) {
	c, err := findCluster(ctx, client, described.Name)
	if err != nil && exit.Code(err) != exit.NotFound {
		return nil, err
	}
	if !given("labels") {
		described.Labels = c.Labels
	}
	if !given("cost-per-hour") {
		described.Cost = c.Cost
	}
	if !given("queues") {
		described.Queues = c.Queues
	}
	if !given("flavors") {
		described.Flavors = c.Flavors
	}
	change, err := query.HoldRequest{Join: &described, Resume: c.Cordon != nil && c.Cordon.Left}.ConfigureRequest(time.Now())
	if err == nil {
		var answer query.ConfigureAnswer
		answer, err = client.Configure(ctx, "", change)
		for _, object := range answer.Objects {
			notes = append(notes, object.Notes...)
		}
	}
	return notes, refusedCluster("join", described.Name, err)
}

// description is what the flags have of the cluster.
func (o *joinOptions) description(name string) (quota.Cluster, error) {
	described := quota.Cluster{Name: name, Labels: o.labels, Queues: o.queues, Flavors: o.flavors}
	if len(o.cost) > 0 {
		cost, err := quota.ParseCost(o.cost)
		if err != nil {
			return described, exit.Usagef("--cost-per-hour: %w", err)
		}
		described.Cost = cost
	}
	if len(o.kubectl) > 0 {
		if _, err := access.NewMemberIntake(name, o.kubectl...); err != nil {
			return described, exit.Usagef("--kubectl-queues: %w", err)
		}
	}
	if faults := (&quota.Config{Clusters: []quota.Cluster{described}}).Validate(); faults != nil {
		return described, exit.Usagef("join %q: %w", name, faults)
	}
	return described, nil
}

// refusedCluster is the error of a change that queue-manager refuses.
func refusedCluster(what, name string, err error) error {
	var refused *query.ProblemError
	if errors.As(err, &refused) {
		return exit.With(exit.Rejected, fmt.Errorf("%s cluster %s: %w", what, name, err))
	}
	return err
}
