package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/deploy/nats/access"
	"muster.dev/muster/deploy/nats/keys"
	"muster.dev/muster/deploy/nats/users"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/program"
)

// joinOptions are the flags of "cluster join".
type joinOptions struct {
	server       *server
	labels, cost map[string]string
	queues       []string
	keys         string
	namespaces   []string
	address      string
}

func joinCommand(s *server) *cobra.Command {
	o := &joinOptions{server: s}
	cmd := &cobra.Command{
		Use: "join NAME", Short: "Describe a cluster that joins, and print the commands that install it",
		Long: `Describe a cluster that joins, and print the two commands that install its capacity-watcher
and dispatcher there. Both connect to NATS; nothing connects to the cluster. Gangs go to it
once it reports nodes. The same name again changes the description, or has a cluster back
that has left.

With --keys, the directory that "go run ./deploy/compose" keeps, the command also makes the
keys of the cluster's two NATS users, once, and writes accounts.conf for the NATS servers,
which then have to reload it.`,
		Example: `  muster cluster join west --labels tier=spot --cost-per-hour nvidia.com/gpu=1.2 --keys ./secrets \
    --address tls://nats.example:4222 --namespaces research`,
		Args: program.Args(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, names []string) error { return o.run(cmd, names[0]) },
	}
	flags := cmd.Flags()
	flags.StringToStringVar(&o.labels, "labels", nil, "the `labels` by which workloads select it")
	flags.StringToStringVar(&o.cost, "cost-per-hour", nil, "the `prices` of resources: of a core, a GiB, or one of everything else")
	flags.StringSliceVar(&o.queues, "queues", nil, "the `ClusterQueues` whose gangs it takes (default all)")
	flags.StringVar(&o.keys, "keys", "", "the `directory` with the keys of the NATS users, to make those of the cluster")
	flags.StringSliceVar(&o.namespaces, "namespaces", []string{"default"}, "the `namespaces` of queues, for the printed command")
	flags.StringVar(&o.address, "address", "tls://NATS:4222", "the `URL` by which the cluster reaches NATS, for the printed command")
	return cmd
}

func (o *joinOptions) run(cmd *cobra.Command, name string) error {
	described, err := o.description(name)
	if err != nil {
		return err
	}
	err = o.server.ask(cmd.Context(), func(ctx context.Context, client *query.Client) error {
		c, err := findCluster(ctx, client, name)
		if err != nil && exit.Code(err) != exit.NotFound {
			return err
		}
		change, err := query.HoldRequest{Join: &described, Resume: c.Cordon != nil && c.Cordon.Left}.ConfigureRequest(time.Now())
		if err == nil {
			_, err = client.Configure(ctx, "", change)
		}
		return refusedCluster("join", name, err)
	})
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "cluster %s is described\n", name)
	if o.keys != "" {
		if err := makeKeys(out, o.keys, name); err != nil {
			return fmt.Errorf("join %s: make its keys in %s: %w", name, o.keys, err)
		}
	}
	o.printInstallation(out, name)
	return nil
}

// description is what the flags say of the cluster.
func (o *joinOptions) description(name string) (quota.Cluster, error) {
	described := quota.Cluster{Name: name, Labels: o.labels, Queues: o.queues}
	if len(o.cost) > 0 {
		cost, err := quota.ParseCost(o.cost)
		if err != nil {
			return described, exit.Usagef("--cost-per-hour: %w", err)
		}
		described.Cost = cost
	}
	if faults := (&quota.Config{Clusters: []quota.Cluster{described}}).Validate(); faults != nil {
		return described, exit.Usagef("join %q: %w", name, faults)
	}
	return described, nil
}

// makeKeys makes the keys of a cluster, once, and prints whether that changed anything.
func makeKeys(out io.Writer, dir, cluster string) error {
	known, err := users.Read(dir)
	if err != nil {
		return err
	}
	if slices.Contains(known.Clusters, cluster) {
		fmt.Fprintf(out, "its keys in %s stay as they are\n", dir)
		return nil
	}
	known.Add(io.Discard, []string{cluster}, nil)
	if err := known.Write(); err != nil {
		return err
	}
	fmt.Fprintf(out, "its keys are made; reload the NATS servers with %s (nats-server --signal reload)\n", filepath.Join(dir, "accounts.conf"))
	return nil
}

// printInstallation prints the commands for an administrator of the cluster.
func (o *joinOptions) printInstallation(out io.Writer, name string) {
	dir := o.keys
	if dir == "" {
		dir = "SECRETS"
	}
	fmt.Fprintf(out, `
Install it, with kubectl and helm for that cluster:
  helm install muster deploy/helm/muster --namespace muster-system --create-namespace \
    --set mode=member --set cluster=%[1]s --set 'namespaces={%[2]s}' --set nats.url=%[3]s
  kubectl --namespace muster-system create secret generic muster-nats \
    --from-file=capacity-watcher=%[4]s --from-file=dispatcher=%[5]s
`, name, strings.Join(o.namespaces, ","), o.address, keys.File(dir, access.CapacityWatcher(name)), keys.File(dir, access.Dispatcher(name)))
}

// leaveOptions are the flags of "cluster leave".
type leaveOptions struct {
	server        *server
	why, by, keys string
	force         bool
}

// namedGangs bounds the workloads that leave names.
const namedGangs = 20

func leaveCommand(s *server) *cobra.Command {
	o := &leaveOptions{server: s}
	cmd := &cobra.Command{
		Use: "leave NAME", Short: "Forget a cluster in which no workload holds places",
		Long: `Forget a cluster: its nodes, and its description. What it still reports does not count, until
"muster cluster join" has it back. The command refuses while workloads hold places there:
drain the cluster first.

With --force, for a cluster that is lost, its workloads give their places up at once and start
again in other clusters, as their next attempts. Nothing proves that their pods do not run any
more: if the cluster is only out of reach, their work runs twice until it is back. Then its
dispatcher removes them.`,
		Example: `  muster cluster leave east
  muster cluster leave east --force --why "the hall has burnt down"`,
		Args: program.Args(1, 1, "one name"), ValidArgsFunction: completeClusters(s),
		RunE: func(cmd *cobra.Command, names []string) error { return o.run(cmd, names[0]) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.force, "force", false, "move workloads away whose pods may still run")
	flags.StringVar(&o.why, "why", "", "the `reason`, shown with the waiting workloads; needed with --force")
	flags.StringVar(&o.by, "by", account(), "`who` asks for it, shown with the waiting workloads")
	flags.StringVar(&o.keys, "keys", "", "the `directory` with the keys of the NATS users, to remove those of the cluster")
	return cmd
}

func (o *leaveOptions) run(cmd *cobra.Command, name string) error {
	if o.force && strings.TrimSpace(o.why) == "" {
		return exit.Usagef("--why is missing; want the reason for freeing places by force")
	}
	out := cmd.OutOrStdout()
	err := o.server.ask(cmd.Context(), func(ctx context.Context, client *query.Client) error {
		c, err := findCluster(ctx, client, name)
		if err != nil {
			return err
		}
		there, err := placedIn(ctx, client, name)
		if err != nil {
			return err
		}
		if len(there) > 0 && !o.force {
			return exit.With(exit.Rejected, fmt.Errorf("leave %s: %d workloads hold places there: %s; drain the cluster first (`muster cluster drain %s`)", name, len(there), titles(there), name))
		}
		change, err := query.HoldRequest{Cluster: name, Leave: true, Force: o.force, By: o.by, Why: o.why}.ConfigureRequest(time.Now())
		if err == nil {
			_, err = client.Configure(ctx, "", change)
		}
		if err != nil {
			return refusedCluster("leave", name, err)
		}
		fmt.Fprintf(out, "cluster %s leaves: its %d nodes are forgotten\n", name, c.Nodes)
		if len(there) > 0 {
			fmt.Fprintf(out, "lost: the work of %d workloads since their last checkpoints; they start again elsewhere, and what runs in %s is not proved to be gone: %s\n", len(there), name, titles(there))
		}
		return nil
	})
	if err != nil || o.keys == "" {
		return err
	}
	known, err := users.Read(o.keys)
	if err == nil {
		err = known.Remove(out, "cluster="+name)
	}
	if err == nil {
		err = known.Write()
	}
	if err != nil {
		return fmt.Errorf("leave %s: remove its keys in %s: %w", name, o.keys, err)
	}
	fmt.Fprintf(out, "reload the NATS servers with %s (nats-server --signal reload)\n", filepath.Join(o.keys, "accounts.conf"))
	return nil
}

// titles names workloads, the first namedGangs of them.
func titles(records []workload.Record) string {
	var names []string
	for i := range records[:min(len(records), namedGangs)] {
		names = append(names, records[i].Title())
	}
	if more := len(records) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// refusedCluster is the error of a change that queue-manager refuses.
func refusedCluster(what, name string, err error) error {
	var refused *query.ProblemError
	if errors.As(err, &refused) {
		return exit.With(exit.Rejected, fmt.Errorf("%s cluster %s: %w", what, name, err))
	}
	return err
}
