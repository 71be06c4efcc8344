package cli

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"muster.dev/muster/deploy/devcluster/internal/fleet"
)

func fleetCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "fleet", Short: "Show fleets, the nodes that an instance starts with"}
	cmd.AddCommand(&cobra.Command{
		Use:   "presets",
		Short: "List the fleets that need no file",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 4, 2, ' ', 0)
			for _, name := range fleet.PresetNames() {
				fmt.Fprintf(w, "%s\t%s\n", name, fleet.Describe(name))
			}
			return w.Flush()
		},
	})
	return cmd
}
