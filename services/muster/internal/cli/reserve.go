package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/policyfile/kueue"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/output"
	"muster.dev/muster/services/internal/client/program"
)

// reserveOptions are the flags of "reserve".
type reserveOptions struct {
	server      *server
	reservation quota.Reservation
	from, until string
	lasts       time.Duration
}

func reserveCommand(s *server) *cobra.Command {
	o := &reserveOptions{server: s}
	r := &o.reservation
	cmd := &cobra.Command{
		Use: "reserve NAME", Short: "Reserve nodes for a time: for a queue, a user or a workload, or for maintenance",
		Long: `Reserve nodes from a time until another. Until the end, a workload that the nodes are not
for gets places on them only if it is declared to end before the reservation begins; one
without a declared run time gets none from now on. The reason of each that waits for this
names the node, the times and who reserved it.

--clusterqueue, --user or --workload is what the nodes are for. Without any of them the
reservation is a maintenance window, and the nodes are empty by its beginning if all end as
they declared. Workloads that still run then continue, or with --evict are evicted, with
their checkpoint grace.

The same name again replaces the reservation. "muster get reservations" lists them, and
"muster unreserve" deletes them.`,
		Example: `  muster reserve new-driver --nodes gpu-1,gpu-2 --from 2026-12-01T08:00:00Z --for 4h --evict --why "driver 600"
  muster reserve demo --node-labels pool=a100 --clusterqueue research --from 2h --for 3h`,
		Args: program.Args(1, 1, "one name"),
		RunE: func(cmd *cobra.Command, names []string) error { return o.reserve(cmd, names[0]) },
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&r.Nodes, "nodes", nil, "the `nodes`, by name")
	flags.StringToStringVar(&r.NodeLabels, "node-labels", nil, "the nodes with all of these `labels`, instead")
	flags.StringVar(&r.Cluster, "cluster", "", "only nodes of this `cluster`")
	flags.StringVar(&o.from, "from", "", "when it begins: a `time`, or a duration from now (default now)")
	flags.StringVar(&o.until, "until", "", "when it ends: a `time`, or a duration from now")
	flags.DurationVar(&o.lasts, "for", 0, "how `long` it lasts, instead of --until")
	flags.StringVar(&r.ClusterQueue, "clusterqueue", "", "the `ClusterQueue` that the nodes are for")
	flags.StringVar(&r.User, "user", "", "the `submitter` for which the nodes are reserved")
	flags.StringVar(&r.Workload, "workload", "", "the `workload` that the nodes are for: an id, or namespace/name")
	flags.BoolVar(&r.Evict, "evict", false, "evict what still runs on the nodes when it begins")
	flags.StringVar(&r.Why, "why", "", "the `reason`, shown with the waiting workloads")
	flags.StringVar(&r.By, "by", account(), "`who` asks for it, shown with the waiting workloads")
	return cmd
}

func (o *reserveOptions) reserve(cmd *cobra.Command, name string) error {
	now := time.Now().UTC()
	if err := o.times(now); err != nil {
		return err
	}
	r := o.reservation
	r.Name, r.Since = name, now.Truncate(time.Second)
	if faults := (&quota.Config{Reservations: []quota.Reservation{r}}).Validate(); faults != nil {
		return exit.Usagef("reserve %q: %w", name, faults)
	}
	change, err := query.Reserve(r)
	if err != nil {
		return err
	}
	return o.server.ask(cmd.Context(), func(ctx context.Context, client *query.Client) error {
		if _, err := client.Configure(ctx, "", change); err != nil {
			return refusedReservation("reserve", name, err)
		}
		fmt.Fprintf(cmd.OutOrStdout(), "reserved for %s from %s until %s\n", r.Purpose(), r.From.Format(time.RFC3339), r.Until.Format(time.RFC3339))
		return nil
	})
}

func refusedReservation(what, name string, err error) error {
	var refused *query.ProblemError
	if errors.As(err, &refused) {
		return exit.With(exit.Rejected, fmt.Errorf("%s %s: %w", what, name, err))
	}
	return err
}

// times reads when the reservation begins and ends.
func (o *reserveOptions) times(now time.Time) (err error) {
	r := &o.reservation
	if r.From, err = readTime("--from", o.from, now); err != nil {
		return err
	}
	switch {
	case (o.until == "") == (o.lasts == 0):
		return exit.Usagef("--until %q and --for %s: want one of them", o.until, o.lasts)
	case o.lasts != 0:
		r.Until = r.From.Add(o.lasts)
		return nil
	}
	r.Until, err = readTime("--until", o.until, now)
	return err
}

// readTime reads a time, or a duration from now. Nothing is now.
func readTime(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return now.Truncate(time.Second), nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at.UTC(), nil
	}
	later, err := time.ParseDuration(text)
	if err != nil {
		return time.Time{}, exit.Usagef("%s %q: want a time such as 2026-12-01T08:00:00Z, or a duration from now such as 2h", flag, text)
	}
	return now.Add(later).Truncate(time.Second), nil
}

func unreserveCommand(s *server) *cobra.Command {
	return &cobra.Command{
		Use: "unreserve NAME...", Short: "Delete reservations of nodes",
		Args: program.Args(1, -1, "at least one name"),
		RunE: func(cmd *cobra.Command, names []string) error {
			return s.ask(cmd.Context(), func(ctx context.Context, client *query.Client) error {
				for _, name := range names {
					answer, err := client.Configure(ctx, "", query.ConfigureRequest{Delete: []kueue.Key{{Kind: kueue.Reservation, Name: name}}})
					if err != nil {
						return refusedReservation("unreserve", name, err)
					}
					if len(answer.Objects) == 1 && answer.Objects[0].Outcome == query.NotThere {
						return exit.NotFoundf("there is no reservation %q; `muster get reservations` lists them", name)
					}
					fmt.Fprintf(cmd.OutOrStdout(), "reservation %s is deleted\n", name)
				}
				return nil
			})
		},
		ValidArgsFunction: completeReservations(s),
	}
}

func (o *getOptions) reservations(cmd *cobra.Command, _ []string) error {
	return o.show(cmd, func(ctx context.Context, client *query.Client) (any, func(output.Format) output.Table, error) {
		all, err := reservationsOf(ctx, client)
		return all, func(output.Format) output.Table { return output.Reservations(all, time.Now()) }, err
	})
}

// reservationsOf lists the reservations that were made.
func reservationsOf(ctx context.Context, client *query.Client) ([]quota.Reservation, error) {
	answer, err := client.Applied(ctx)
	if err != nil {
		return nil, err
	}
	return answer.Reservations()
}

// completeReservations offers the names of reservations.
func completeReservations(s *server) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		var names []string
		_ = s.ask(cmd.Context(), func(ctx context.Context, client *query.Client) error { // without a server there is nothing to offer
			all, err := reservationsOf(ctx, client)
			for _, r := range all {
				names = append(names, r.Name)
			}
			return err
		})
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
