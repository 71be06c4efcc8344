package program

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

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
