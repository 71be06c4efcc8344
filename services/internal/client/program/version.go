package program

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"muster.dev/muster/pkg/service/version"
)

// Version returns the command "version".
func Version() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version and the build",
		Args:  Args(0, 0, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s %s %s/%s %s\n", cmd.Root().Name(), version.String(), runtime.GOOS, runtime.GOARCH, runtime.Version())
			return err
		},
	}
}
