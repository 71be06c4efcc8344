package output

import (
	"fmt"
	"io"
	"strings"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/workload"
)

// ways writes the commands that reach a Ray workload whose pods exist: kubectl, with the
// caller's own rights in its cluster.
func ways(w io.Writer, r *workload.Record) error {
	if r.Phase != workload.Running && r.Phase != workload.Dispatched || !strings.HasPrefix(r.Kind, "Ray") {
		return nil
	}
	head := fmt.Sprintf("--namespace %s --selector %s=%s,ray.io/node-type=head", r.Namespace, kube.WorkloadLabel, r.ID)
	if _, err := fmt.Fprintf(w, "\nIn cluster %s, with kubectl:\n", Cell(r.Cluster)); err != nil {
		return err
	}
	commands := []string{"kubectl logs --follow " + head}
	if r.Kind == "RayJob" {
		commands = append(commands, fmt.Sprintf("kubectl logs --follow --namespace %s job/%s", r.Namespace, r.Name))
	}
	commands = append(commands,
		fmt.Sprintf("kubectl port-forward --namespace %s $(kubectl get pods --output name %s) 8265:8265", r.Namespace, head),
		"ray job submit --address http://127.0.0.1:8265 -- python main.py")
	for _, command := range commands {
		if _, err := fmt.Fprintf(w, "  %s\n", Cell(command)); err != nil {
			return err
		}
	}
	return nil
}
