// Package cli is the command line of muster-dev: one file per command. It reads
// flags and runs a stack, or installs what the services need into a cluster.
//
// It is not for users of Muster: what submits, shows and follows is the client.
package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"muster.dev/muster/services/internal/client/program"
)

// Run runs one command line.
func Run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	return program.Run(ctx, Command(), args, in, out, errOut)
}

// Command returns the command "muster-dev" with all its subcommands.
func Command() *cobra.Command {
	root := program.Root(&cobra.Command{
		Use:   "muster-dev",
		Short: "Run all of Muster on a laptop, or prepare a cluster for it",
		Long: `muster-dev runs all of Muster in one process, runs the demo on it, and installs what
Muster's services need into a cluster. The client of the running stack is muster,
which finds it without flags.`,
	})
	root.AddCommand(upCommand(), demoCommand(), installCommand(), program.Version())
	return root
}
