package cli

import (
	"context"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"muster.dev/muster/services/internal/client/program"
)

// The names under which kubectl looks for the plugin that serves `kubectl muster`, and for
// what completes its command lines (kubectl 1.26 and later).
const (
	pluginName           = "kubectl-muster"
	pluginCompletionName = "kubectl_complete-muster"
)

// Named returns what runs the command lines of a program that was started under this path:
// muster, or the plugin of kubectl.
func Named(path string) program.Runner {
	switch filepath.Base(path) {
	case pluginName:
		return runPlugin
	case pluginCompletionName:
		return func(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
			return runPlugin(ctx, append([]string{cobra.ShellCompRequestCmd}, args...), in, out, errOut)
		}
	}
	return Run
}

func runPlugin(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	return runAs(ctx, func(s *server) *cobra.Command {
		root := command(s)
		root.Annotations[cobra.CommandDisplayNameAnnotation] = "kubectl muster"
		return root
	}, args, in, out, errOut)
}
