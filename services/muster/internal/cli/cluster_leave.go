package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/deploy/nats/users"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/program"
)

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
dispatcher removes them, for which it needs its key.`,
		Example: `  muster cluster leave east
  muster cluster leave east --force --why "the hall has burnt down"`,
		Args: program.Args(1, 1, "one name"), ValidArgsFunction: completeClusters(s),
		RunE: func(cmd *cobra.Command, names []string) error { return o.run(cmd, names[0]) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.force, "force", false, "move workloads away whose pods may still run")
	flags.StringVar(&o.why, "why", "", "the `reason`, shown with the waiting workloads; needed with --force")
	flags.StringVar(&o.by, "by", account(), "`who` asks for it, shown with the waiting workloads")
	flags.StringVar(&o.keys, "keys", "", "the `directory` with the keys of the NATS users, to remove those of the cluster once it has left; not with --force")
	return cmd
}

func (o *leaveOptions) run(cmd *cobra.Command, name string) error {
	switch {
	case o.force && o.keys != "":
		return exit.Usagef("--force and --keys: want one of them; %s", keysStay(name))
	case o.force && strings.TrimSpace(o.why) == "":
		return exit.Usagef("--why is missing; want the reason for freeing places by force")
	}
	var known users.Registry
	if o.keys != "" {
		var err error
		if known, err = registryIn(o.keys); err != nil {
			return err
		}
	}
	out := cmd.OutOrStdout()
	err := o.server.ask(cmd.Context(), func(ctx context.Context, client *query.Client) error {
		if err := o.order(ctx, client, out, name); err != nil || o.keys == "" {
			return err
		}
		return awaitLeft(ctx, client, name)
	})
	if err != nil || o.keys == "" {
		return err
	}
	if err := removeKeys(out, known, o.keys, name); err != nil {
		return fmt.Errorf("leave %s: remove its keys in %s: %w", name, o.keys, err)
	}
	return nil
}

// order has the cluster leave, unless it leaves already.
func (o *leaveOptions) order(ctx context.Context, client *query.Client, out io.Writer, name string) error {
	c, err := findCluster(ctx, client, name)
	if err != nil {
		return err
	}
	if c.Cordon != nil && c.Cordon.Left && (c.Cordon.Forced || !o.force) {
		fmt.Fprintf(out, "unchanged: %s\n", cordonText(c))
		return nil
	}
	there, err := placedIn(ctx, client, name)
	if err != nil {
		return err
	}
	holders := holdersText(there, c.Live)
	if holders != "" && !o.force {
		return exit.With(exit.Rejected, fmt.Errorf("leave %s: %s; drain the cluster first (`muster cluster drain %s`)", name, holders, name))
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
}

// holdersText returns who holds places in a cluster; empty if none does. Those that have ended,
// and whose pods may remain, are counted only.
func holdersText(there []workload.Record, live int) string {
	switch ended := live - len(there); {
	case len(there) == 0 && live > 0:
		return fmt.Sprintf("%d workloads that have ended hold places there until their pods are gone", live)
	case len(there) == 0:
		return ""
	case ended > 0:
		return fmt.Sprintf("%d workloads hold places there: %s, and %d that have ended, until their pods are gone", live, titles(there), ended)
	}
	return fmt.Sprintf("%d workloads hold places there: %s", len(there), titles(there))
}

// How often a cluster is looked at until it has left, and for how long.
const (
	leftPoll = 200 * time.Millisecond
	leftMost = 5 * time.Second
)

// awaitLeft waits until a cluster has left with nothing of Muster in it. With the keys of its
// dispatcher the commands would go by which that removes what still runs there.
func awaitLeft(ctx context.Context, client *query.Client, name string) error {
	for began := time.Now(); ; {
		c, err := findCluster(ctx, client, name)
		switch {
		case exit.Code(err) == exit.NotFound: // nothing is known of it any more
			return nil
		case err != nil:
			return err
		case c.Cordon != nil && c.Cordon.Forced:
			return exit.With(exit.Rejected, fmt.Errorf("leave %s: it has left by force; %s", name, keysStay(name)))
		case c.State == query.ClusterLeft:
			return nil
		case time.Since(began) > leftMost:
			return exit.With(exit.TryAgain, fmt.Errorf("leave %s: it is %s, and its keys stay until it has left; give the same command again", name, c.State))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(leftPoll):
		}
	}
}

// keysStay returns why the keys of a lost cluster stay, and how they go.
func keysStay(name string) string {
	return fmt.Sprintf("with its key the dispatcher of a lost cluster reads what it is to remove when it is back. "+
		"Once nothing of Muster runs there any more, `go run ./deploy/compose -remove cluster=%s DIR` removes the keys", name)
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
