package ray

import "k8s.io/apimachinery/pkg/runtime/schema"

// Resource returns the resource of KubeRay's API with a plural name, such as "rayclusters", in the
// version that Muster reads and creates.
func Resource(plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: plural}
}
