package program

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"muster.dev/muster/services/internal/client/exit"
)

// wrongFlag words an error of a flag. A word before the flag that should have been a
// command is the first mistake: the flag is that command's.
func wrongFlag(cmd *cobra.Command, err error) error {
	if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 {
		return NoSuchCommand(cmd, words)
	}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		if want := wanted(invalid.GetFlag().Value.Type()); want != "" {
			return exit.Usagef("--%s %q: want %s", invalid.GetFlag().Name, invalid.GetValue(), want)
		}
	}
	return exit.Usagef("%w", err)
}

// wanted returns what a value of the type looks like; empty for types whose own errors do.
func wanted(kind string) string {
	switch kind {
	case "duration":
		return "a number and a unit, such as 90s, 10m or 2h"
	case "int", "int32", "int64":
		return "a whole number, such as 10"
	case "bool":
		return "true or false"
	}
	return ""
}
