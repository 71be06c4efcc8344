package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

func specOf(t *testing.T, text string) *corev1.PodSpec {
	t.Helper()
	var spec corev1.PodSpec
	if err := yaml.UnmarshalStrict([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	return &spec
}

func TestPodTemplateRequests(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, spec string
		want       resource.List
	}{
		{"sum of containers, limits as default requests", `
containers:
- {name: a, resources: {requests: {cpu: "1"}, limits: {cpu: "4", memory: 1Gi, nvidia.com/gpu: "2"}}}
- {name: b, resources: {requests: {cpu: 500m, memory: 0}}}`,
			resource.List{"cpu": 1500, "memory": 1 << 30, "nvidia.com/gpu": 2, "pods": 1}},
		{"nothing asked", `containers: [{name: a}]`, resource.List{"pods": 1}},
		{"the peak of init containers counts when it is higher", `
initContainers:
- {name: i, resources: {limits: {cpu: 200m, memory: 256Mi}}}
containers:
- {name: a, resources: {requests: {cpu: "1"}}}`,
			resource.List{"cpu": 1000, "memory": 256 << 20, "pods": 1}},
		{"native sidecars run beside containers", `
initContainers:
- {name: s, restartPolicy: Always, resources: {requests: {cpu: 100m}}}
- {name: i, resources: {requests: {cpu: 2}}}
containers:
- {name: a, resources: {requests: {cpu: "1"}}}`,
			resource.List{"cpu": 2100, "pods": 1}},
		{"overhead is added", `
overhead: {cpu: 250m, memory: 64Mi}
containers:
- {name: a, resources: {requests: {cpu: "1"}}}`,
			resource.List{"cpu": 1250, "memory": 64 << 20, "pods": 1}},
		{"resources of the pod prevail, a limit as default", `
resources: {requests: {cpu: "3"}, limits: {cpu: "4", memory: 2Gi}}
containers:
- {name: a, resources: {requests: {cpu: "1"}}}`,
			resource.List{"cpu": 3000, "memory": 2 << 30, "pods": 1}},
		{"a limit of the pod yields to what containers ask", `
resources: {limits: {cpu: "4"}}
containers:
- {name: a, resources: {requests: {cpu: "1"}}}`,
			resource.List{"cpu": 1000, "pods": 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := PodTemplate(specOf(t, c.spec))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.Requests); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPodTemplateConstraints(t *testing.T) {
	t.Parallel()
	spec := specOf(t, `
containers: [{name: a}]
nodeSelector: {zone: a}
tolerations:
- {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}
- {operator: Exists}
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
      - matchExpressions: [{key: gpu, operator: In, values: [a100, h100]}]
        matchFields: [{key: metadata.name, operator: NotIn, values: [n1]}]
      - matchExpressions: [{key: big, operator: Exists}]
    preferredDuringSchedulingIgnoredDuringExecution:
    - {weight: 1, preference: {matchExpressions: [{key: x, operator: Exists}]}}`)
	got, err := PodTemplate(spec)
	if err != nil {
		t.Fatal(err)
	}
	want := workload.Template{
		Requests:     resource.List{"pods": 1},
		Unset:        workload.Unset{"cpu": {{Times: 1}}, "memory": {{Times: 1}}},
		Asks:         [][]workload.ContainerAsk{{{Name: "a"}}},
		NodeSelector: map[string]string{"zone": "a"},
		Affinity: []workload.NodeTerm{
			{
				Labels: []workload.Requirement{{Key: "gpu", Operator: "In", Values: []string{"a100", "h100"}}},
				Fields: []workload.Requirement{{Key: "metadata.name", Operator: "NotIn", Values: []string{"n1"}}},
			},
			{Labels: []workload.Requirement{{Key: "big", Operator: "Exists"}}},
		},
		Tolerations: []workload.Toleration{
			{Key: "nvidia.com/gpu", Operator: "Exists", Effect: "NoSchedule"}, {Operator: "Exists"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("template (-want +got):\n%s", diff)
	}
}

// TestPodTemplateLeavesTheSpec: defaulting works on a copy.
func TestPodTemplateLeavesTheSpec(t *testing.T) {
	t.Parallel()
	spec := specOf(t, `
resources: {limits: {cpu: "4"}}
containers: [{name: a, resources: {limits: {cpu: "1"}}}]`)
	before := spec.DeepCopy()
	if _, err := PodTemplate(spec); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, spec); diff != "" {
		t.Errorf("the spec was changed (-before +after):\n%s", diff)
	}
}
