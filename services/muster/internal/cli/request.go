package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/overhttp"
	"muster.dev/muster/services/internal/client/program"
)

// requestOptions are the flags of the commands that ask for a change of one workload.
type requestOptions struct {
	server             *server
	namespace, why, by string
	timeout            time.Duration
}

// errEnded: nothing can be asked of a workload any more.
var errEnded = errors.New("it has ended")

// change is what is asked of a workload.
type change struct {
	verb string // for errors
	// ready checks what needs no workload; nil for nothing.
	ready func(ctx context.Context, c *connection) error
	// made reports that the workload is as wanted; empty while it is not. at is when the record was
	// so, by queue-manager's clock; zero if that is not known.
	made func(r *workload.Record, at time.Time) string
	// ask asks for it.
	ask func(ctx context.Context, c *connection, r workload.Record) error
	// refused begins the reason in the event of a refusal.
	refused string
}

// addFlags adds the flags to a command.
func (o *requestOptions) addFlags(cmd *cobra.Command) {
	o.addFlagsWithoutWhy(cmd)
	cmd.Flags().StringVar(&o.why, "why", "", "the `reason`, stored with the workload")
}

// addFlagsWithoutWhy adds the flags to a command that reports something.
func (o *requestOptions) addFlagsWithoutWhy(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&o.namespace, "namespace", "n", "", "the `namespace` of the workload, if its name is ambiguous")
	flags.StringVar(&o.by, "by", account(), "`who` asks, stored with the workload")
	flags.DurationVar(&o.timeout, "timeout", 30*time.Second, "how long to wait for the answer")
}

// run asks for a change, and waits until it is made or refused.
func (o *requestOptions) run(cmd *cobra.Command, name string, wanted change) error {
	ctx, out := cmd.Context(), program.Lines(cmd.OutOrStdout())
	c, err := o.server.open(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	if wanted.ready != nil {
		if err := answered(ctx, func(ctx context.Context) error { return wanted.ready(ctx, c) }); err != nil {
			return err
		}
	}
	record, err := c.find(ctx, name, o.namespace)
	if err != nil {
		return err
	}
	label := reference(record.Workload)
	if made := wanted.made(&record, time.Time{}); made != "" {
		fmt.Fprintf(out, "unchanged: %s %s\n", label, made)
		return nil
	}
	if record.Phase.Final() && !record.Holding { // queue-manager has nothing to do then, and no answer
		return exit.With(exit.Rejected, fmt.Errorf("%s %s: %w: it is %s", wanted.verb, label, errEnded, record.Phase))
	}
	following, stop := context.WithTimeout(ctx, o.timeout)
	defer stop()
	steps, err := c.follow(following, record)
	if err != nil {
		return err
	}
	err = wanted.ask(ctx, c, record)
	if errors.Is(err, overhttp.ErrUnchanged) { // then there is no event
		fmt.Fprintf(out, "unchanged: %s %s\n", label, cmp.Or(wanted.made(&record, time.Time{}), "is so already"))
		return nil
	}
	if err != nil {
		var refused *query.ProblemError
		if errors.As(err, &refused) && !refused.Busy {
			return exit.With(exit.Rejected, fmt.Errorf("%s %s: %w", wanted.verb, label, err))
		}
		return err
	}
	err = await(following, steps, wanted, label, out)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return exit.With(exit.Timeout, fmt.Errorf("%s %s: no answer within %s; the message is stored, and is processed when queue-manager runs", wanted.verb, label, o.timeout))
	}
	return err
}

// await waits until a change that was asked for is made or refused.
func await(ctx context.Context, steps life, wanted change, label string, out io.Writer) error {
	for {
		step, err := steps.Next(ctx)
		if err != nil {
			return err
		}
		if step.Record.Phase == workload.Rejected { // another submission under its id; it stays as it is
			continue
		}
		if made := wanted.made(&step.Record, step.At); made != "" {
			fmt.Fprintf(out, "%s %s\n", label, made)
			return nil
		}
		if step.Record.Reason != nil && strings.HasPrefix(step.Record.Reason.Message, wanted.refused) {
			return exit.With(exit.Rejected, fmt.Errorf("%s: %s", label, step.Record.Reason.Message))
		}
		if step.Record.Phase.Final() {
			return exit.With(exit.Rejected, fmt.Errorf("%s %s: %w: it is %s", wanted.verb, label, errEnded, step.Record.Phase))
		}
	}
}
