package kueue_test

import (
	"fmt"

	"muster.dev/muster/pkg/policyfile/kueue"
)

// Kueue's own manifests are the policy; what does nothing under Muster is noted.
func ExampleParse() {
	objects, err := kueue.Parse([]byte(`
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: a100}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: vision}
spec:
  cohort: research
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors:
    - name: a100
      resources: [{name: nvidia.com/gpu, nominalQuota: 8}]
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	policy := kueue.Merge(objects)
	for _, queue := range policy.ClusterQueues {
		fmt.Println(queue.Name, queue.Cohort, queue.ResourceGroups[0].Flavors[0].Resources[0].Nominal)
	}
	// Output: vision research 8
}
