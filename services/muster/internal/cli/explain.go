package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/output"
	"muster.dev/muster/services/internal/client/program"
)

// explainOptions are the flags of "explain".
type explainOptions struct {
	server    *server
	output    output.Format
	namespace string
	certify   bool
}

func explainCommand(s *server) *cobra.Command {
	o := &explainOptions{server: s}
	cmd := &cobra.Command{
		Use: "explain NAME|ID", Short: "Show why a workload waits, and the smallest changes that would admit it",
		Long: "Show where a workload stands in its queue, why it waits, and changes each of which alone would\n" +
			"admit it now: fewer pods, more nodes of a kind, more quota, the end of other workloads. queue-manager\n" +
			"tries each change by a decision on the present state.\n\n" +
			"With --certificate the output also has a proof that the workload cannot start now. \"muster verify\"\n" +
			"checks it without a server.",
		Example: "  muster explain train\n  muster explain train -o json --certificate > train.json && muster verify train.json",
		Args:    program.Args(1, 1, "one name or id"), RunE: o.explain, ValidArgsFunction: completeWorkloads(s, false),
	}
	program.AddOutput(cmd, cmd.Flags(), &o.output)
	cmd.Flags().StringVarP(&o.namespace, "namespace", "n", "", "the `namespace` of the workload, if its name is ambiguous")
	cmd.Flags().BoolVar(&o.certify, "certificate", false, "add a proof that the workload cannot start now (with -o json or yaml)")
	return cmd
}

func (o *explainOptions) explain(cmd *cobra.Command, names []string) error {
	if o.certify && !o.output.Data() {
		return exit.Usagef("--certificate: a certificate is data; add -o json")
	}
	return o.server.ask(cmd.Context(), func(ctx context.Context, client *query.Client) error {
		record, err := findWorkload(ctx, client, names[0], o.namespace)
		if err != nil {
			return err
		}
		explanation := output.Explanation{Name: record.Name, Phase: record.Phase}
		none := "it has ended"
		explanation.Workload, explanation.Queue, explanation.LocalQueue = record.ID, record.Queue, record.Queue
		explanation.Estimate, explanation.Starts = record.Estimate(), output.StartsIn(&record, time.Now())
		if record.Reason != nil {
			explanation.Reason = *record.Reason
		}
		if !record.Phase.Final() {
			answer, err := client.Explain(ctx, query.ExplainRequest{ID: record.ID, Certificate: o.certify})
			if errors.Is(err, query.ErrNoAnswer) {
				return fmt.Errorf("explain workload %s: no queue-manager leads at the moment; try again: %w", record.ID, err)
			}
			if err != nil {
				return err
			}
			explanation.Explanation, explanation.Certificate, none = answer.Explanation, answer.Certificate, answer.NoCertificate
		}
		if o.certify && explanation.Certificate == nil {
			return fmt.Errorf("workload %s is %s and has no certificate: %s", record.Name, record.Phase, cmp.Or(none, "this queue-manager is older and creates none"))
		}
		if !o.output.Data() {
			return output.Explain(cmd.OutOrStdout(), explanation)
		}
		return output.Print(cmd.OutOrStdout(), o.output, explanation, nil)
	})
}
