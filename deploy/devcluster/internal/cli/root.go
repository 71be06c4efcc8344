package cli

import (
	"github.com/spf13/cobra"

	"muster.dev/muster/deploy/devcluster/internal/instance"
)

// Command returns the command "devcluster" with all its subcommands.
func Command() *cobra.Command {
	root := &cobra.Command{
		Use:   "devcluster",
		Short: "Kubernetes with KubeRay and simulated nodes, for development and tests",
		Long: `devcluster runs Kubernetes clusters on one machine, without containers: etcd,
kube-apiserver, kube-scheduler, kube-controller-manager, the KubeRay operator,
and KWOK in place of nodes and kubelets. Each cluster is an instance with a name
and a state directory of its own; several run side by side.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(upCommand(), downCommand(), statusCommand(), kubeconfigCommand(),
		nodeCommand(), poolCommand(), etcdCommand(), fleetCommand(), componentCommand())
	return root
}

// target is the instance that a command is about.
type target struct {
	name string
	dir  string
}

func (t *target) addFlags(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&t.name, "name", instance.DefaultName, "name of the instance")
	cmd.PersistentFlags().StringVar(&t.dir, "dir", "",
		"state directory of the instance, new or empty for 'up' (default: one for the name, in the directory for temporary files)")
}

func (t *target) locate() (instance.Dir, error) { return instance.Locate(t.name, t.dir) }
