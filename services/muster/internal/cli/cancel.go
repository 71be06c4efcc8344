package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/follow"
	"muster.dev/muster/services/internal/client/program"
	"muster.dev/muster/services/internal/client/submission"
)

// cancelOptions are the flags of "cancel".
type cancelOptions struct {
	server         *server
	namespace, why string
	wait           bool
	timeout        time.Duration
}

func cancelCommand(s *server) *cobra.Command {
	o := &cancelOptions{server: s}
	cmd := &cobra.Command{
		Use:   "cancel NAME|ID",
		Short: "End a workload in any phase",
		Args:  program.Args(1, 1, "one name or id"),
		RunE: func(cmd *cobra.Command, names []string) error {
			return o.run(cmd, names[0])
		},
		ValidArgsFunction: completeWorkloads(s, true),
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.namespace, "namespace", "n", "", "the `namespace` of the workload, if its name is ambiguous")
	flags.StringVar(&o.why, "why", "", "the `reason`, which is kept with the workload")
	flags.BoolVar(&o.wait, "wait", false, "wait until the workload has ended")
	flags.DurationVar(&o.timeout, "timeout", 0, "how long --wait waits (default: no limit)")
	return cmd
}

func (o *cancelOptions) run(cmd *cobra.Command, name string) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	if web, err := o.server.overHTTP(); err != nil {
		return err
	} else if web != nil && !o.wait {
		return overWeb(ctx, web, name, o.namespace, func(ctx context.Context, record workload.Record) error {
			if record.Phase.Final() {
				fmt.Fprintf(out, "%s has ended already: %s\n", reference(record.Workload), record.Phase)
				return nil
			}
			if err := web.Cancel(ctx, record.ID, o.why); err != nil {
				return err
			}
			fmt.Fprintf(out, "%s is to be cancelled (workload %s)\n", reference(record.Workload), record.ID)
			return nil
		})
	}
	b, err := o.server.connect(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	var record workload.Record
	err = answered(ctx, func(ctx context.Context) error {
		record, err = findWorkload(ctx, query.NewClient(b.Conn()), name, o.namespace)
		return err
	})
	if err != nil {
		return err
	}
	if record.Phase.Final() {
		fmt.Fprintf(out, "%s has ended already: %s\n", reference(record.Workload), record.Phase)
		return nil
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	var life *follow.Life
	if o.wait {
		if life, err = follow.Start(following, b, record.Queue, record.ID); err != nil {
			return err
		}
	}
	if err := submission.Cancel(ctx, b, record, o.why, time.Now()); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s is to be cancelled (workload %s)\n", reference(record.Workload), record.ID)
	if !o.wait {
		return nil
	}
	return (&waiting{out: out, label: reference(record.Workload), goal: gone, timeout: o.timeout}).until(ctx, life)
}
