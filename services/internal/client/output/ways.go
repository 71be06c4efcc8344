package output

import (
	"fmt"
	"io"
	"strings"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/workload"
)

// ways writes the commands that reach a Ray workload.
func ways(w io.Writer, r *workload.Record) error {
	when, all := waysOf(r)
	if len(all) == 0 {
		return nil
	}
	if _, err := fmt.Fprintf(w, "\nIn cluster %s, %s:\n", Cell(r.Cluster), when); err != nil {
		return err
	}
	for _, way := range all {
		if _, err := fmt.Fprintf(w, "  # %s\n  %s\n", way.Caption, Cell(way.Command)); err != nil {
			return err
		}
	}
	return nil
}

// waysOf lists the commands that reach a Ray workload whose pods exist, or existed when it
// ended: kubectl, with the caller's own rights in its cluster.
func waysOf(r *workload.Record) (when string, all []Way) {
	live, ended := r.Phase == workload.Running || r.Phase == workload.Dispatched, r.Phase == workload.Succeeded || r.Phase == workload.Failed
	if !live && !(ended && r.Cluster != "" && !r.Times.Dispatched.IsZero()) || !strings.HasPrefix(r.Kind, "Ray") {
		return "", nil
	}
	when, follow := "with kubectl", " --follow"
	if ended {
		when, follow = "with kubectl, as long as its pods are kept", ""
	}
	head := fmt.Sprintf("--namespace %s --selector %s=%s,ray.io/node-type=head", r.Namespace, kube.WorkloadLabel, r.ID)
	all = []Way{{"the log of its head pod", "kubectl logs" + follow + " " + head}}
	if r.Kind == "RayJob" {
		all = append(all, Way{"the output of its job", fmt.Sprintf("kubectl logs%s --namespace %s job/%s", follow, r.Namespace, r.ObjectName())})
	}
	if live {
		all = append(all,
			Way{"its dashboard, at http://127.0.0.1:8265 while this runs", fmt.Sprintf("kubectl port-forward --namespace %s $(kubectl get pods --output name %s) 8265:8265", r.Namespace, head)},
			Way{"a job on it, meanwhile", "ray job submit --address http://127.0.0.1:8265 -- python main.py"})
	}
	return when, all
}
