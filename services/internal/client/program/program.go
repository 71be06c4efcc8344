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
	"slices"
	"strings"
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

// helpCommand shows the help of a command, and refuses names of none.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Show the help of a command",
		ValidArgsFunction: func(_ *cobra.Command, given []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var names []cobra.Completion
			if above, rest, err := root.Find(given); err == nil && len(rest) == 0 {
				for _, c := range above.Commands() {
					if c.IsAvailableCommand() {
						names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, names []string) error {
			found, rest, err := root.Find(names)
			if err != nil || len(rest) > 0 {
				if found == nil || len(rest) == 0 {
					found, rest = root, names
				}
				return NoSuchCommand(found, rest)
			}
			found.InitDefaultHelpFlag()
			found.InitDefaultVersionFlag()
			return found.Help()
		},
	}
}

// WithoutConnection has the help of commands leave the flags of the root out, which are for
// reaching a server.
func WithoutConnection(commands ...*cobra.Command) []*cobra.Command {
	for _, cmd := range commands {
		cmd.SetHelpFunc(func(c *cobra.Command, args []string) {
			c.InheritedFlags().VisitAll(func(f *pflag.Flag) { f.Hidden = true })
			c.Root().HelpFunc()(c, args)
		})
	}
	return commands
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
		fmt.Fprintf(errOut, "%s: %v\n", root.Name(), err)
	}
	code := exit.Code(err)
	if code == exit.Usage && !ofFile(err) {
		fmt.Fprintf(errOut, "See `%s --help`.\n", cmd.CommandPath())
	}
	return code
}

// withoutQuotes takes from the texts of flags what marks the name of a value in the help: a
// completion shows them as they are.
func withoutQuotes(cmd *cobra.Command) {
	plain := func(f *pflag.Flag) { f.Usage = strings.ReplaceAll(f.Usage, "`", "") }
	cmd.LocalNonPersistentFlags().VisitAll(plain)
	cmd.PersistentFlags().VisitAll(plain)
	for _, below := range cmd.Commands() {
		withoutQuotes(below)
	}
}

// ofFile reports whether an error is about a file, of which no help tells more.
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

// NoSuchCommand refuses arguments of a command that only has subcommands.
func NoSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	message := fmt.Sprintf("%q has no command %q", cmd.CommandPath(), args[0])
	cmd.SuggestionsMinimumDistance = 2 // letters
	if hint := hintFor(cmd, args); hint != "" {
		message += ": " + hint
	} else if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
		message += "; did you mean " + strings.Join(like, " or ") + "?"
	}
	return exit.Usagef("%s", message)
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

// hinted begins the annotations of a command that say what to type instead of a word.
const hinted = "muster.dev/hint/"

// Hint is the annotation of a command that says what is right in the place of words after it
// that are no commands; without words, of any that is like none. NAME stands for the word, or
// for the one after it when the word is listed.
func Hint(text string, words ...string) map[string]string {
	if len(words) == 0 {
		return map[string]string{hinted: text}
	}
	hints := map[string]string{}
	for _, word := range words {
		hints[hinted+word] = text
	}
	return hints
}

func hintFor(cmd *cobra.Command, args []string) string {
	if hint := cmd.Annotations[hinted+strings.ToLower(args[0])]; hint != "" {
		if len(args) > 1 {
			hint = strings.ReplaceAll(hint, "NAME", args[1])
		}
		return hint
	}
	if len(cmd.SuggestionsFor(args[0])) > 0 {
		return ""
	}
	return strings.ReplaceAll(cmd.Annotations[hinted], "NAME", args[0])
}

// FixedList completes a flag that takes values of a list, separated by commas.
func FixedList[T ~string](values []T) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		given := begun[:strings.LastIndexByte(begun, ',')+1]
		var names []cobra.Completion
		for _, value := range values {
			if !slices.Contains(strings.Split(given, ","), string(value)) {
				names = append(names, given+string(value))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// Fixed completes a flag or argument from a list.
func Fixed[T ~string](values []T) cobra.CompletionFunc {
	var names []string
	for _, value := range values {
		names = append(names, string(value))
	}
	return cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)
}

// CompleteFlag offers values for a flag of the command.
func CompleteFlag(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // there is no such flag: a mistake in the program
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
