// Package program is what the programs muster and muster-dev share as command lines: how one
// runs and ends, how it checks arguments and completes them. It is not for what the commands
// do.
package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/service/version"
	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/output"
)

// Runner runs one command line and returns its exit code.
type Runner func(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int

// Main runs the command line of this process and returns its exit code. The
// first signal ends the command in order; a second one ends it at once.
func Main(run Runner) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop)
	return run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}

// Root fills in what the root command of every program has.
func Root(root *cobra.Command) *cobra.Command {
	root.Version = version.String()
	root.SilenceUsage, root.SilenceErrors, root.DisableAutoGenTag = true, true, true
	root.Args = NoSuchCommand
	root.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	root.SetFlagErrorFunc(wrongFlag)
	root.SetHelpCommand(helpCommand(root))
	return root
}

// Run runs one command line of a root command. A context that NATS has ended by a
// refusal gets no other answer than that.
func Run(ctx context.Context, root *cobra.Command, args []string, in io.Reader, out, errOut io.Writer) int {
	out, errOut = output.Safe(out, columnsOf(out)), output.Safe(errOut, columnsOf(errOut))
	if len(args) > 0 && args[0] == cobra.ShellCompRequestCmd {
		withoutQuotes(root)
	}
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	cmd, err := root.ExecuteContextC(ctx)
	if cause := context.Cause(ctx); errors.Is(cause, bus.ErrRefused) {
		err = cause
	}
	if errors.Is(err, output.ErrNoNames) {
		err = exit.Usagef("%w", err)
	}
	if err != nil && !exit.Silent(err) {
		fmt.Fprintf(errOut, "%s: %v\n", root.DisplayName(), err)
	}
	code := exit.Code(err)
	if code == exit.Usage && !ofFile(err) {
		fmt.Fprintf(errOut, "See `%s --help`.\n", cmd.CommandPath())
	}
	return code
}

// ofFile reports whether an error is about a file, on which no help has more.
func ofFile(err error) bool {
	var missing *fs.PathError
	var faults fault.List
	var one fault.Fault
	return errors.As(err, &missing) || errors.As(err, &faults) || errors.As(err, &one)
}

// columnsOf is how long a line of a terminal is; 0 for what is none.
func columnsOf(w io.Writer) int {
	file, is := w.(*os.File)
	if !is || !term.IsTerminal(int(file.Fd())) {
		return 0
	}
	columns, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// Args checks the number of arguments; a negative most means any.
func Args(least, most int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, given []string) error {
		if len(given) >= least && (most < 0 || len(given) <= most) {
			return nil
		}
		got := "none"
		if len(given) > 0 {
			got = fmt.Sprintf("%q", given)
		}
		return exit.Usagef("want %s; got %s", what, got)
	}
}

// FormerFlag accepts the former name of a flag, which the help does not show.
func FormerFlag(flags *pflag.FlagSet, former, name string) {
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, given string) pflag.NormalizedName {
		if given == former {
			given = name
		}
		return pflag.NormalizedName(given)
	})
}

// AddOutput declares the flag -o among flags of the command.
func AddOutput(cmd *cobra.Command, flags *pflag.FlagSet, format *output.Format) {
	*format = output.Text
	flags.VarP(format, "output", "o", "text, wide, json, yaml, name or jsonpath=EXPRESSION")
	CompleteFlag(cmd, "output", Fixed(output.Formats()))
}

// Lines keeps what several write at once apart: each Write is a line.
func Lines(w io.Writer) io.Writer { return &lines{w: w} }

type lines struct {
	mu sync.Mutex
	w  io.Writer
}

// Write writes one line.
func (l *lines) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(line)
}
