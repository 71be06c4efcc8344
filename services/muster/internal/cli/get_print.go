package cli

import (
	"fmt"
	"maps"
	"strings"

	"github.com/spf13/cobra"

	"muster.dev/muster/services/internal/client/output"
	"muster.dev/muster/services/internal/client/program"
)

// print prints an answer in the chosen format. That there is nothing is for people.
func (o *getOptions) print(cmd *cobra.Command, value any, table func() output.Table) error {
	if o.output.Data() {
		return output.Print(cmd.OutOrStdout(), o.output, value, nil)
	}
	t := table()
	if len(t.Rows) == 0 {
		_, err := fmt.Fprintf(cmd.ErrOrStderr(), "No %s found%s.\n", nounOf(cmd), within(o.queue, o.namespace))
		return err
	}
	t.NoHeader = o.noHeaders
	return t.Write(cmd.OutOrStdout(), "")
}

// nounOf names what a command lists.
func nounOf(cmd *cobra.Command) string {
	if cmd.Name() == "applied" {
		return "applied objects"
	}
	return strings.ReplaceAll(cmd.Name(), "-", " ")
}

// within names what a list is restricted to.
func within(queue, namespace string) string {
	text := ""
	if queue != "" {
		text += " in queue " + output.Cell(queue)
	}
	if namespace != "" {
		text += " in namespace " + output.Cell(namespace)
	}
	return text
}

// kindHints are what to type in the place of kinds of Kubernetes.
func kindHints() map[string]string {
	hints := program.Hint("Muster calls RayClusters, RayJobs and their like workloads; want `muster get workloads`, or `muster get workloads NAME`",
		"raycluster", "rayclusters", "rayjob", "rayjobs", "rayservice", "rayservices", "job", "jobs", "appwrapper", "appwrappers")
	maps.Copy(hints, program.Hint("`muster describe workload NAME` shows the pods of one, and where they are", "pod", "pods"))
	return hints
}
