package cli

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/program"
)

// releaseOptions are the flags of "release".
type releaseOptions struct {
	server             *server
	namespace, why, by string
	force              bool
	timeout            time.Duration
}

func releaseCommand(s *server) *cobra.Command {
	o := &releaseOptions{server: s}
	cmd := &cobra.Command{
		Use:   "release NAME|ID --force --why TEXT",
		Short: "Free a workload's places although its objects may still exist",
		Long: `Free a workload's places although its objects may still exist.

This command is for operators, for a workload that keeps its places because Muster
cannot see or remove its objects or pods. Try "muster cancel" first: it frees the
places when nothing runs on them any more.

The workload ends, and other workloads can use its quota and places. Muster no
longer manages its objects: delete what is left by hand. Pods that Muster sees count
as use of their nodes, so no other workload gets their room. Pods that it does not
see do not count: if a node or the whole cluster is unreachable, Muster may give its
room away twice.

The workload's history and the recorded inputs show who asked, when and why.`,
		Args: program.Args(1, 1, "one name or id"),
		RunE: func(cmd *cobra.Command, names []string) error {
			return o.run(cmd, names[0])
		},
		ValidArgsFunction: completeWorkloads(s, true),
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.namespace, "namespace", "n", "", "the `namespace` of the workload, if its name is ambiguous")
	flags.BoolVar(&o.force, "force", false, "confirm that you know what is left of the workload")
	flags.StringVar(&o.why, "why", "", "the `reason`, stored with the workload")
	flags.StringVar(&o.by, "by", account(), "`who` asks, stored with the workload")
	flags.DurationVar(&o.timeout, "timeout", time.Minute, "how long to wait for the answer")
	return cmd
}

// account names the user of this process.
func account() string {
	name := "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}

func (o *releaseOptions) run(cmd *cobra.Command, name string) error {
	switch {
	case !o.force:
		return exit.Usagef("--force is missing: the places may still be in use; try \"muster cancel\" first, and read \"muster release --help\"")
	case strings.TrimSpace(o.why) == "":
		return exit.Usagef("--why is missing; want the reason for freeing the places by force")
	}
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	c, err := o.server.open(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	record, err := c.find(ctx, name, o.namespace)
	if err != nil {
		return err
	}
	if !record.Holding {
		fmt.Fprintf(out, "%s holds no places: it is %s\n", reference(record.Workload), record.Phase)
		return nil
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	steps, err := c.follow(following, record)
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "Warning: %s %s in namespace %s of cluster %s may still exist, with its pods. Delete what is left by hand: Muster keeps no room for pods that it does not see.\n",
		record.Kind, record.Name, record.Namespace, record.Cluster)
	if err := c.release(ctx, record, o.by, o.why); err != nil {
		return err
	}
	if record.Phase.Final() { // no event of a new phase follows
		fmt.Fprintf(out, "%s is being released (workload %s)\n", reference(record.Workload), record.ID)
		return nil
	}
	return (&waiting{out: out, label: reference(record.Workload), goal: gone, timeout: o.timeout}).until(ctx, steps)
}
