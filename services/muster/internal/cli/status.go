package cli

import (
	"context"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/services/internal/client/output"
	"muster.dev/muster/services/internal/client/program"
)

func statusCommand(s *server) *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the state of Muster's own parts, and what needs attention",
		Long: `Show the state of Muster's own parts: the leader, the number of workloads, the last
report of each cluster, Postgres with its standbys, and NATS with the fill of each
stream. Problems that need an operator come last, with what to do.

A part that does not answer within 2 s is shown as silent. When no queue-manager
answers at all, the command exits with code 6.`,
		Args: program.Args(0, 0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.ask(cmd.Context(), func(ctx context.Context, client *query.Client) error {
				answer, err := client.Status(ctx)
				if err != nil {
					return err
				}
				if format.Data() {
					return output.Print(cmd.OutOrStdout(), format, answer, nil)
				}
				return output.Status(cmd.OutOrStdout(), answer)
			})
		},
	}
	program.AddOutput(cmd, cmd.Flags(), &format)
	return cmd
}
