package stack

import (
	"fmt"
	"strings"
)

// AppWrapper returns a v1beta1 AppWrapper of a name in a namespace that wraps the
// given objects, in YAML.
func AppWrapper(namespace, name string, objects ...string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "apiVersion: workload.codeflare.dev/v1beta1\nkind: AppWrapper\nmetadata: {name: %s, namespace: %s}\nspec:\n  resources:\n    GenericItems:\n", name, namespace)
	for _, object := range objects {
		out.WriteString("    - replicas: 1\n      generictemplate:\n")
		for line := range strings.Lines(strings.TrimSpace(object)) {
			out.WriteString("        " + strings.TrimRight(line, "\n") + "\n")
		}
	}
	return out.String()
}

// PlainObjects returns two ConfigMaps, a Service, a Job with a pod of one CPU,
// and a Deployment, named after name, to be wrapped with a RayCluster.
func PlainObjects(name string) []string {
	return []string{
		fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-config}\ndata: {a: b}\n", name),
		fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s-script}\ndata: {a: b}\n", name),
		fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata: {name: %s-service}\nspec: {ports: [{port: 80}], selector: {app: %s}}\n", name, name),
		fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %s-web}
spec:
  replicas: 2
  selector: {matchLabels: {app: %s}}
  template:
    metadata: {labels: {app: %s}}
    spec:
      containers: [{name: web, image: web, resources: {requests: {cpu: "1"}}}]
`, name, name, name),
	}
}
