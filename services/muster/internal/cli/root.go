// Package cli is the command line of Muster: one file per command. It reads
// flags, asks or tells Muster over NATS, and prints.
//
// It is not for running services (package dev) nor for judging manifests, which
// Muster does where all doors have the same rules.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/version"
	"muster.dev/muster/services/muster/internal/output"
)

// Main runs the command line of this process and returns its exit code. The
// first signal ends the command in order; a second one ends it at once.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop)
	return Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

// Run runs one command line.
func Run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	ctx, refused := context.WithCancelCause(ctx)
	defer refused(nil)
	out, errOut = output.Safe(out), output.Safe(errOut)
	root := command(&server{refused: refused})
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	if cause := context.Cause(ctx); errors.Is(cause, bus.ErrRefused) {
		err = fmt.Errorf("%w; a tenant of a queue may submit to it, under their own name, wait for their workloads, and read events with `muster events --new --queue QUEUE`; "+
			"lists, explanations, cancelling and the past need an operator's rights", cause)
	}
	var decided *exitError
	if err != nil && !(errors.As(err, &decided) && decided.err == nil) {
		fmt.Fprintf(errOut, "muster: %v\n", err)
	}
	if code := exitCode(err); code == ExitUsage {
		fmt.Fprintln(errOut, "See `muster --help` and `muster COMMAND --help`.")
		return code
	} else {
		return code
	}
}

// Command returns the command "muster" with all its subcommands.
func Command() *cobra.Command { return command(&server{}) }

func command(server *server) *cobra.Command {
	root := &cobra.Command{
		Use:   "muster",
		Short: "Admit Ray workloads to GPU clusters, all or nothing",
		Long: `Muster admits Ray workloads to GPU clusters all or nothing: a workload waits in a
queue until every pod of it has a place, and only then starts.

muster submits, shows, follows and cancels workloads over NATS, and runs all of
Muster in one process for a laptop ("muster dev").

Where Muster is: --nats-url, or MUSTER_NATS_URL, or the running "muster dev".

` + exitHelp,
		Version:           version.String(),
		SilenceUsage:      true,
		SilenceErrors:     true,
		Args:              noSuchCommand,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		DisableAutoGenTag: true,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage("%w", err) })
	server.addFlags(root)
	root.AddCommand(
		submitCommand(server), applyCommand(server), deleteCommand(server), predictCommand(), getCommand(server), describeCommand(server), explainCommand(server), eventsCommand(server),
		cancelCommand(server), releaseCommand(server), simulateCommand(), scenarioCommand(), devCommand(), demoCommand(), versionCommand(),
		healthCommand(), installCommand(), replayCommand(),
	)
	return root
}

// noSuchCommand refuses arguments of a command that only has subcommands.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	message := fmt.Sprintf("%q has no command %q", cmd.CommandPath(), args[0])
	cmd.SuggestionsMinimumDistance = 2 // letters
	if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
		message += "; did you mean " + strings.Join(like, " or ") + "?"
	}
	return usage("%s", message)
}

// args checks the number of arguments; a negative most means any.
func args(least, most int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, given []string) error {
		if len(given) >= least && (most < 0 || len(given) <= most) {
			return nil
		}
		return usage("want %s, got %d arguments", what, len(given))
	}
}

// fixed completes a flag or argument from a list.
func fixed[T ~string](values []T) cobra.CompletionFunc {
	var names []string
	for _, value := range values {
		names = append(names, string(value))
	}
	return cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)
}

// completeFlag offers values for a flag of the command.
func completeFlag(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // there is no such flag: a mistake in this package
	}
}
