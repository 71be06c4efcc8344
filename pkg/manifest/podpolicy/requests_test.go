package podpolicy_test

import (
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"muster.dev/muster/pkg/manifest/podpolicy"
	"muster.dev/muster/pkg/spec/workload"
)

// A queue may refuse pods that ask for nothing, in every mode; the place is named.
func TestRequestsMayBeRequired(t *testing.T) {
	t.Parallel()
	const cluster = `apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: a}
spec:
  headGroupSpec: {rayStartParams: {}, template: {spec: {containers: [{name: h, image: i, resources: {limits: {cpu: 1}}}]}}}
  workerGroupSpecs:
  - {groupName: w, rayStartParams: {}, template: {spec: {containers: [{name: c, image: i, RESOURCES}, {name: d, image: i}]}}}
`
	for _, test := range []struct {
		resources, rule string
		refused         bool
	}{
		{"resources: {requests: {memory: 1Gi}}", workload.RequestsRequired, false},
		{"resources: {limits: {nvidia.com/gpu: 1}}", workload.RequestsRequired, false},
		{"resources: {}", workload.RequestsRequired, true},
		{"resources: {requests: {cpu: 0}}", workload.RequestsRequired, true},
		{"resources: {}", "", false},
	} {
		for _, mode := range []string{"", workload.PodsUnchecked} {
			t.Run(test.resources+" "+test.rule+" "+mode, func(t *testing.T) {
				t.Parallel()
				manifest, err := yaml.YAMLToJSON([]byte(strings.Replace(cluster, "RESOURCES", test.resources, 1)))
				if err != nil {
					t.Fatal(err)
				}
				err = podpolicy.Check(workload.PodPolicy{Mode: mode, Requests: test.rule}, manifest)
				if errors.Is(err, podpolicy.ErrDenied) != test.refused {
					t.Errorf("it is refused with %v, want a refusal: %v", err, test.refused)
				}
				if test.refused && !strings.Contains(err.Error(), "spec.workerGroupSpecs[0].template.spec: none of its containers has requests or limits") {
					t.Errorf("the refusal is %v", err)
				}
			})
		}
	}
	if err := podpolicy.Validate(workload.PodPolicy{Requests: "always"}); err == nil || !strings.Contains(err.Error(), `requests: "always": want required`) {
		t.Errorf("an unknown rule: %v", err)
	}
}
