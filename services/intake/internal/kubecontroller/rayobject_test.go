package kubecontroller

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/pkg/manifest/ray"
)

// TestALabelledObjectHasThePriorityClassOfItsLabels: Muster's label counts before Kueue's.
func TestALabelledObjectHasThePriorityClassOfItsLabels(t *testing.T) {
	t.Parallel()
	for labels, want := range map[string]string{
		"{}":                                     "",
		"{kueue.x-k8s.io/priority-class: batch}": "batch",
		"{kueue.x-k8s.io/priority-class: batch, muster.dev/priority-class: urgent}": "urgent",
	} {
		t.Run(labels, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(`
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: glue, namespace: lab, uid: u, labels: `+labels+`}
spec:
  suspend: true
  headGroupSpec:
    template: {spec: {containers: [{name: ray, image: "rayproject/ray:2.52.0", resources: {limits: {cpu: 2}}}]}}
`), &object.Object); err != nil {
				t.Fatal(err)
			}
			submitted, _, err := labelledWorkload(ray.Shipped(), object, "id", "research", nil)
			if err != nil {
				t.Fatalf("labels %s: %v", labels, err)
			}
			if submitted.PriorityClass != want {
				t.Errorf("labels %s: priority class %q, want %q", labels, submitted.PriorityClass, want)
			}
		})
	}
}

// TestLabelledObjectsComeWithWarnings: likely mistakes give the warnings of muster predict.
func TestLabelledObjectsComeWithWarnings(t *testing.T) {
	t.Parallel()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: glue, namespace: lab, uid: u}
spec:
  suspend: true
  headGroupSpec:
    rayStartParams: {num-gpus: "2"}
    template: {spec: {containers: [{name: ray, image: "rayproject/ray:2.52.0", resources: {limits: {cpu: 2}}}]}}
`), &object.Object); err != nil {
		t.Fatal(err)
	}
	_, warnings, err := labelledWorkload(ray.Shipped(), object, "id", "research", nil)
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], `num-gpus: is "2", but`) {
		t.Errorf("warnings are %q, %v", warnings, err)
	}
}
