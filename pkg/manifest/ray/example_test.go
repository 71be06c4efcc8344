package ray_test

import (
	"fmt"

	"muster.dev/muster/pkg/manifest/ray"
)

// Read turns a manifest into the pods that admission has to place. The memory of the
// workers is that of the init container which KubeRay adds to them.
func ExampleRead() {
	object, err := ray.Read([]byte(`
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: train, namespace: research}
spec:
  headGroupSpec:
    rayStartParams: {}
    template: {spec: {containers: [{name: ray, image: rayproject/ray:2.54.0, resources: {requests: {cpu: 2}}}]}}
  workerGroupSpecs:
  - groupName: workers
    replicas: 4
    rayStartParams: {}
    template: {spec: {containers: [{name: ray, image: rayproject/ray:2.54.0, resources: {limits: {cpu: 8, nvidia.com/gpu: 8}}}]}}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, set := range object.PodSets {
		fmt.Printf("%s: %d x %s\n", set.Name, set.Count, set.Template.Requests)
	}
	// Output:
	// headgroup: 1 x cpu 2, pods 1
	// workers: 4 x cpu 8, memory 256Mi, nvidia.com/gpu 8, pods 1
}
