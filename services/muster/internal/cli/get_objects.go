package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/services/internal/client/output"
	"muster.dev/muster/services/internal/client/program"
)

// objectCommands list reservations, applied objects and dead letters.
func (o *getOptions) objectCommands() []*cobra.Command {
	return []*cobra.Command{
		{
			Use: "reservations", Aliases: []string{"reservation"}, Short: "List reservations of nodes, past ones too",
			Args: program.Args(0, 0, "no argument"), RunE: o.reservations,
		},
		{
			Use: "applied", Short: "List applied objects that configure queues",
			Args: program.Args(0, 0, "no argument"), RunE: o.applied,
		},
		{
			Use: "dead-letters", Aliases: []string{"dead"}, Short: "List messages that could not be processed, with the reason",
			Long: `List messages that could not be processed, with the reason, the oldest first. NATS
keeps them for 30 days, 64 MiB at most, and they block no other message; -o json
shows them in full. Over HTTP operators see the last 1,000, without their content.
Messages that NATS refuses to keep are in the table undelivered of queue-manager's
database instead.`,
			Args: program.Args(0, 0, "no argument"), RunE: o.deadLetters,
		},
	}
}

func (o *getOptions) applied(cmd *cobra.Command, _ []string) error {
	return o.show(cmd, func(ctx context.Context, client *query.Client) (any, func(output.Format) output.Table, error) {
		answer, err := client.Applied(ctx)
		return answer, func(output.Format) output.Table { return output.Applied(answer.Objects) }, err
	})
}

func (o *getOptions) deadLetters(cmd *cobra.Command, _ []string) error {
	if web, err := o.server.overHTTP(); err != nil {
		return err
	} else if web != nil {
		return answered(cmd.Context(), func(ctx context.Context) error {
			dead, err := web.DeadLetters(ctx)
			if err != nil {
				return err
			}
			if dead.Older > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "%d older ones are left out; --nats-url lists all.\n", dead.Older)
			}
			return o.print(cmd, dead.DeadLetters, func() output.Table { return output.DeadLettersOverHTTP(dead.DeadLetters, time.Now()) })
		})
	}
	b, err := o.server.connect(cmd.Context())
	if err != nil {
		return err
	}
	defer b.Close()
	return answered(cmd.Context(), func(ctx context.Context) error {
		dead, err := b.DeadLetters(ctx)
		if err != nil {
			return err
		}
		return o.print(cmd, dead, func() output.Table { return output.DeadLetters(dead, time.Now()) })
	})
}
