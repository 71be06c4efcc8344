package cli

import (
	"github.com/spf13/pflag"

	"muster.dev/muster/services/internal/client/exit"
)

// namespaces are the flags by which a list is of one namespace, or of all, which it is
// without them.
type namespaces struct {
	namespace string
	all       bool
}

func (n *namespaces) addFlags(flags *pflag.FlagSet, only string) {
	flags.StringVarP(&n.namespace, "namespace", "n", "", only)
	flags.BoolVarP(&n.all, "all-namespaces", "A", false, "those of all namespaces (the default)")
}

func (n *namespaces) check() error {
	if n.all && n.namespace != "" {
		return exit.Usagef("--all-namespaces and --namespace %q are both set; want one of them", n.namespace)
	}
	return nil
}
