package output

import (
	"fmt"
	"io"
	"strings"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/workload"
)

// ways writes the commands that reach a Ray workload whose pods exist, or existed when it
// ended: kubectl, with the caller's own rights in its cluster.
func ways(w io.Writer, r *workload.Record) error {
	live, ended := r.Phase == workload.Running || r.Phase == workload.Dispatched, r.Phase == workload.Succeeded || r.Phase == workload.Failed
	if !live && !(ended && r.Cluster != "" && !r.Times.Dispatched.IsZero()) || !strings.HasPrefix(r.Kind, "Ray") {
		return nil
	}
	title, follow := "with kubectl", " --follow"
	if ended {
		title, follow = "with kubectl, as long as its pods are kept", ""
	}
	if _, err := fmt.Fprintf(w, "\nIn cluster %s, %s:\n", Cell(r.Cluster), title); err != nil {
		return err
	}
	head := fmt.Sprintf("--namespace %s --selector %s=%s,ray.io/node-type=head", r.Namespace, kube.WorkloadLabel, r.ID)
	type way struct{ caption, command string }
	ways := []way{{"the log of its head pod", "kubectl logs" + follow + " " + head}}
	if r.Kind == "RayJob" {
		ways = append(ways, way{"the output of its job", fmt.Sprintf("kubectl logs%s --namespace %s job/%s", follow, r.Namespace, r.Name)})
	}
	if live {
		ways = append(ways,
			way{"its dashboard, at http://127.0.0.1:8265 while this runs", fmt.Sprintf("kubectl port-forward --namespace %s $(kubectl get pods --output name %s) 8265:8265", r.Namespace, head)},
			way{"a job on it, meanwhile", "ray job submit --address http://127.0.0.1:8265 -- python main.py"})
	}
	for _, way := range ways {
		if _, err := fmt.Fprintf(w, "  # %s\n  %s\n", way.caption, Cell(way.command)); err != nil {
			return err
		}
	}
	return nil
}
