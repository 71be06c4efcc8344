package program

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"muster.dev/muster/services/internal/client/exit"
)

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

// hinted begins the annotations of a command that have what to type instead of a word.
const hinted = "muster.dev/hint/"

// Hint is the annotation of a command with what is right in the place of words after it
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
