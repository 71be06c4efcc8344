package cli

import (
	"github.com/spf13/cobra"

	"muster.dev/muster/deploy/devcluster/internal/launch"
)

// componentCommand is how "up" starts its children. It is not for people.
func componentCommand() *cobra.Command {
	var (
		t       target
		etcdURL string
	)
	cmd := &cobra.Command{
		Use:    "component NAME",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := t.locate()
			if err != nil {
				return err
			}
			return launch.RunComponent(cmd.Context(), args[0], dir, etcdURL)
		},
	}
	t.addFlags(cmd)
	cmd.Flags().StringVar(&etcdURL, "etcd-url", "", "URL of etcd")
	return cmd
}
