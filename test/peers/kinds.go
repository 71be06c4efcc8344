package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"muster.dev/muster/pkg/manifest/appwrapper"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/test/stack"
)

var (
	rayClusters = ray.Resource("rayclusters")
	rayJobs     = ray.Resource("rayjobs")
	appWrappers = schema.GroupVersionResource{Group: appwrapper.Group, Version: appwrapper.V1beta2, Resource: "appwrappers"}
)

// kind is what gangs are created as.
type kind struct {
	name, title string
	resource    schema.GroupVersionResource
	// framework is Kueue's name of it.
	framework string
	// manifest returns a gang of a head and a worker with that many GPUs.
	manifest func(name string, gpus int) string
	// wraps: Muster admits it by the creation of the RayCluster of the same name in it; it
	// has no use for spec.suspend.
	wraps bool
}

// kinds are in the order in which they are measured.
func kinds() []kind {
	return []kind{
		{name: "raycluster", title: "RayClusters", resource: rayClusters, framework: "ray.io/raycluster", manifest: rayCluster},
		{name: "rayjob", title: "RayJobs", resource: rayJobs, framework: "ray.io/rayjob", manifest: func(name string, gpus int) string {
			return stack.RayJob(name, 1, gpus, "succeeded", "1h")
		}},
		{name: "appwrapper", title: "AppWrappers of a RayCluster", resource: appWrappers, framework: "workload.codeflare.dev/appwrapper", manifest: wrapped, wraps: true},
	}
}

func rayCluster(name string, gpus int) string { return stack.RayCluster(name, 1, gpus) }

func wrapped(name string, gpus int) string {
	return fmt.Sprintf(`{"apiVersion": "%s/%s", "kind": "AppWrapper", "metadata": {"name": %q}, "spec": {"components": [{"template": %s}]}}`,
		appwrapper.Group, appwrapper.V1beta2, name, rayCluster(name, gpus))
}

// kindsOf returns the kinds of names with commas in between.
func kindsOf(names string) (chosen []kind, err error) {
	wanted := strings.Split(names, ",")
	for _, k := range kinds() {
		if i := slices.Index(wanted, k.name); i >= 0 {
			chosen, wanted = append(chosen, k), slices.Delete(wanted, i, i+1)
		}
	}
	if len(wanted) > 0 {
		return nil, fmt.Errorf("kind %q: want raycluster, rayjob or appwrapper, with commas in between", wanted[0])
	}
	return chosen, nil
}

// object returns a gang as it is created with the label of its queue.
func (k kind) object(g gang, label string) (*unstructured.Unstructured, error) {
	var object unstructured.Unstructured
	if err := json.Unmarshal([]byte(stack.Labelled(k.manifest(g.name, g.gpus), label, g.queue)), &object.Object); err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	return &object, nil
}
