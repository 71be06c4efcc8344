package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/output"
	"muster.dev/muster/services/internal/client/program"
)

// etaOptions are the flags of "eta".
type etaOptions struct {
	namespaces
	server *server
	output output.Format
	queue  string
	past   bool
}

func etaCommand(s *server) *cobra.Command {
	o := &etaOptions{server: s}
	cmd := &cobra.Command{
		Use: "eta [NAME|ID]", Short: "Show when waiting workloads are estimated to start",
		Long: "Show when waiting workloads will start: half of them by the p50, nine of ten by the p90.\n\n" +
			"queue-manager simulates the running and waiting workloads with its own decisions. It\n" +
			"learns run times from workloads that have ended, by queue, submitter, name and size;\n" +
			"a declared run time is an upper bound. It learns the error of its estimates from\n" +
			"workloads that have started. Later submissions may pass, and are not included. A\n" +
			"workload behind others that never end has no estimate, and the note names them.",
		Example: "  muster eta\n  muster eta train\n  muster eta train --history\n  muster eta --queue research -o json",
		Args:    program.Args(0, 1, "at most one name or id"), RunE: o.run, ValidArgsFunction: completeWorkloads(s, false),
	}
	program.AddOutput(cmd, cmd.Flags(), &o.output)
	cmd.Flags().StringVarP(&o.queue, "queue", "q", "", "only those of this `queue`")
	cmd.Flags().BoolVar(&o.past, "history", false, "show earlier estimates of one workload, and how far its start was from them")
	o.addFlags(cmd.Flags(), "only those of this `namespace`")
	return cmd
}

func (o *etaOptions) run(cmd *cobra.Command, names []string) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.past {
		return o.history(cmd, names)
	}
	return o.server.ask(cmd.Context(), func(ctx context.Context, client *query.Client) error {
		records, err := o.waiting(ctx, client, names)
		if err != nil {
			return err
		}
		if len(records) == 0 && !o.output.Data() {
			_, err := fmt.Fprintf(cmd.ErrOrStderr(), "No waiting workloads found%s.\n", within(o.queue, o.namespace))
			return err
		}
		return output.Print(cmd.OutOrStdout(), o.output, query.WorkloadsAnswer{Workloads: records}, func() output.Table {
			return output.Estimates(records, time.Now())
		})
	})
}

// waiting lists the workloads that wait, or the one of that name if it does.
func (o *etaOptions) waiting(ctx context.Context, client *query.Client, names []string) ([]workload.Record, error) {
	if len(names) == 0 {
		records, err := everyWorkload(ctx, client, query.WorkloadsRequest{Namespace: o.namespace, Queue: o.queue, Phases: []workload.Phase{workload.Queued}})
		if err == nil && o.queue != "" && len(records) == 0 {
			err = thereIsQueue(ctx, client, o.queue)
		}
		return slices.DeleteFunc(records, func(r workload.Record) bool { return r.Phase != workload.Queued }), err
	}
	one, err := findWorkload(ctx, client, names[0], o.namespace)
	if err != nil {
		return nil, err
	}
	if one.Phase != workload.Queued {
		return nil, fmt.Errorf("workload %s is %s: only a waiting workload has an estimate", one.Title(), one.Phase)
	}
	return []workload.Record{one}, nil
}

// history shows the estimates that were made of a workload while it waited.
func (o *etaOptions) history(cmd *cobra.Command, names []string) error {
	if len(names) == 0 {
		return exit.Usagef("eta --history: want the name or id of one workload")
	}
	return o.server.ask(cmd.Context(), func(ctx context.Context, client *query.Client) error {
		one, err := findWorkload(ctx, client, names[0], o.namespace)
		if err != nil {
			return err
		}
		answer, err := client.History(ctx, query.HistoryRequest{ID: one.ID})
		if err != nil {
			return err
		}
		if len(answer.Estimates) == 0 && !o.output.Data() {
			_, err := fmt.Fprintf(cmd.ErrOrStderr(), "No estimates of workload %s are kept.\n", one.Title())
			return err
		}
		return output.Print(cmd.OutOrStdout(), o.output, answer, func() output.Table { return output.PastEstimates(answer.Estimates, answer.Entries) })
	})
}
