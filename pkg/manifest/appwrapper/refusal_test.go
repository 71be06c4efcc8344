package appwrapper_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"muster.dev/muster/pkg/manifest/appwrapper"
	"muster.dev/muster/pkg/manifest/ray"
)

// Each message says where, what and what would be right: the AppWrapper itself.
func TestRefusalsOfTheWrapper(t *testing.T) {
	t.Parallel()
	const kind = "apiVersion: workload.codeflare.dev/v1beta2\nkind: AppWrapper\n"
	good := " {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}"
	named := kind + "metadata: {name: a}\n"
	many := strings.Repeat("\n    - generictemplate: {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}", appwrapper.MaxItems+1)
	for i := range appwrapper.MaxItems + 1 {
		many = strings.Replace(many, "name: c}", fmt.Sprintf("name: c-%d}", i), 1)
	}
	refused(t, map[string]string{
		named: "spec: is missing; want resources.GenericItems (v1beta1) or components (v1beta2)",
		named + "spec: {components: [{}], resources: {}}":                                         "spec: has both resources and components; want one of them",
		kind + "spec: {components: [{}]}":                                                         "metadata: is missing; want an object with a name",
		kind + "metadata: {}\nspec: {components: [{}]}":                                           "metadata.name: is missing; want a name, or generateName",
		named + "spec: none":                                                                      `spec: is "none"; want an object: resources.GenericItems`,
		named + "spec: {components: {template: {}}}":                                              "spec.components: is an object; want a list, each entry as - template: OBJECT",
		named + "spec: {components: [Pod]}":                                                       `spec.components[0]: is "Pod"; want an object: template with the wrapped object`,
		named + "spec: {components: [{template: Pod}]}":                                           `spec.components[0].template: is "Pod"; want an object: the wrapped object`,
		named + "spec: {components: [{podSets: {path: template}, template: {}}]}":                 "spec.components[0].podSets: is an object; want a list of objects with path and replicas",
		named + "spec: {resources: [{}]}":                                                         "spec.resources: is a list; want an object: GenericItems, a list of wrapped objects",
		named + "spec: {resources: {}}":                                                           "spec.resources.GenericItems: is missing; want a list of at least one wrapped object, as - generictemplate: OBJECT",
		v1beta1(" {generictemplate: {}}"):                                                         "spec.resources.GenericItems: is an object; want a list, each entry as - generictemplate: OBJECT",
		v1beta1(" three"):                                                                         `spec.resources.GenericItems: is "three"; want a list`,
		v1beta1("\n    - Pod"):                                                                    `spec.resources.GenericItems[0]: is "Pod"; want an object: generictemplate with the wrapped object`,
		v1beta1("\n    - generictemplate: [1]"):                                                   "spec.resources.GenericItems[0].generictemplate: is a list; want an object: the wrapped object",
		v1beta1("\n    - {generictemplate: {}, custompodresources: 3}"):                           "spec.resources.GenericItems[0].custompodresources: is 3; want a list of objects",
		named + "spec: {components: []}":                                                          "spec.components: is empty; want at least one wrapped object",
		named + "spec: {components: [{podSets: []}]}":                                             "spec.components[0].template: is missing; want the wrapped object",
		named + "spec: {managedBy: me, components: [{template: " + good + "}]}":                   `spec.managedBy: is "me"; remove it: another controller would manage the AppWrapper`,
		named + "spec: {components: [{podSets: [{path: spec}], template: " + good + "}]}":         `spec.components[0].podSets[0].path: is "spec"; want a path that starts with "template"`,
		named + "spec: {components: [{podSets: [{path: template..x}], template: " + good + "}]}":  `podSets[0].path: is "template..x"; want fields as .name and places in lists as [0]`,
		named + "spec: {components: [{podSets: [{replicas: -1, path: template}], template: {}}]}": `podSets[0].replicas: is "-1"; want a whole number from 0`,
		named + "spec: {components: [{podSets: [{replicas: 2, path: template}], template: " + good + "}]}": "podSets[0]: differ from the 1 that the template of Pod p has; " +
			"leave podSets out: Muster reads them from the template",
		kind + "metadata: {name: a, annotations: {muster.dev/idle-time: 1h}}\nspec: {components: [{template: " + good + "}]}": "metadata.annotations[muster.dev/idle-time]: is set; remove it",
		v1beta1("") + " []":            "spec.resources.GenericItems: is empty; want at least one wrapped object",
		v1beta1("\n    - replicas: 1"): "GenericItems[0].generictemplate: is missing; want the wrapped object",
		v1beta1(many):                  fmt.Sprintf("GenericItems[%d].generictemplate: is one object too many; at most %d are accepted", appwrapper.MaxItems, appwrapper.MaxItems),
		strings.Replace(v1beta1(item(good, "")), "GenericItems:", "Items: [{}]\n    GenericItems:", 1): "spec.resources.Items: has 1 entries; wrap the objects in GenericItems",
		strings.Replace(named, "v1beta2", "v1beta1", 1) + "spec: {priority: 1}":                        "spec: has neither components nor resources",
		strings.Replace(v1beta1(item(good, "")), "priority: 9", "priority: high", 1):                   `spec.priority: is "high"; want a whole number from`,
		v1beta1(item(good, "\n      custompodresources: [7]")):                                         "custompodresources[0]: is no object; want replicas, requests and limits",
		v1beta1(item(good, "\n      custompodresources: [{replicas: 1, requests: {cpu: [1]}}]")):       "custompodresources[0].requests.cpu: is a list; want a Kubernetes quantity",
		v1beta1(item(good, "\n      custompodresources: [{replicas: 1, requests: 7}]")):                `want amounts by resource, such as cpu: "2"`,
		v1beta1(item(good, "\n      custompodresources: [{replicas: 10001}]")):                         `custompodresources[0].replicas: is "10001"; want a whole number from 0 to 10000`,
		v1beta1(item(good, "")) + "\n  schedulingSpec: {minAvailable: -1}":                             `spec.schedulingSpec.minAvailable: is "-1"; want a whole number from 0`,
		v1beta1(item(good, "")) + "\n  schedulingSpec: {dispatchDuration: {limit: 1.5}}":               `dispatchDuration.limit: is "1.5"; want a whole number from 0`,
		v1beta1(item(" {apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: 9999, template: T}}", ""), item(" {apiVersion: batch/v1, kind: Job, metadata: {name: k}, spec: {parallelism: 9999, template: T}}", "")): "a gang has at most",
	})
}

// And each wrapped object.
func TestRefusalsOfWrappedObjects(t *testing.T) {
	t.Parallel()
	wrapped := func(object string) string { return v1beta1(item(" {"+object+"}", "")) }
	deployment := func(pod string) string {
		return wrapped("apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {template: " + pod + "}")
	}
	old := strings.Replace(fmt.Sprintf(rayCluster, "a"), "ray.io/v1", "ray.io/v1alpha1", 1)
	refused(t, map[string]string{
		wrapped("apiVersion: v1, kind: ConfigMap"):                                                                       "GenericItems[0].generictemplate.metadata: is missing; want an object with a name",
		wrapped("kind: ConfigMap, metadata: {name: c}"):                                                                  "generictemplate.apiVersion: is missing; want the API version of the object, such as v1",
		wrapped("apiVersion: v1, metadata: {name: c}"):                                                                   "generictemplate.kind: is missing; want the kind of the object",
		wrapped("apiVersion: v1, kind: ConfigMap, metadata: {name: c, finalizers: [a/b]}"):                               "metadata.finalizers: is set; remove it: Muster alone decides how long the object lives",
		wrapped("apiVersion: v1, kind: ConfigMap, metadata: {name: c, ownerReferences: [{}]}"):                           "metadata.ownerReferences: is set; remove it",
		v1beta1(item(fmt.Sprintf(rayCluster, "a"), ""), item(old, "")):                                                   `GenericItems[1].generictemplate: is RayCluster "a", as spec.resources.GenericItems[0].generictemplate is; wrap each object once`,
		wrapped("apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {suspend: true}"):                           "spec.suspend: is true; remove it: the queue holds the workload back until it can start",
		wrapped("apiVersion: batch/v1, kind: CronJob, metadata: {name: j}"):                                              "generictemplate.kind: is CronJob; remove it: Muster cannot reserve room",
		wrapped("apiVersion: ray.io/v1, kind: RayCronJob, metadata: {name: j}"):                                          "generictemplate.kind: is RayCronJob; remove it",
		wrapped("apiVersion: batch.volcano.sh/v1alpha1, kind: Job, metadata: {name: j}"):                                 "generictemplate.spec.tasks: is missing; want a list",
		wrapped("apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: j}, spec: {replicatedJobs: [{}]}"): "is no pod template; want an object with metadata and spec",
		deployment("7"):                       "generictemplate.spec.template: is no pod template; want an object with metadata and spec",
		deployment("{spec: {containers: 7}}"): "generictemplate.spec.template.spec: does not decode",
		deployment("{spec: {containers: [{name: c, image: i, resources: {requests: {memory: 5Ei}}}, {name: d, image: i, resources: {requests: {memory: 4Ei}}}]}}"):   "the containers together request too much",
		deployment("{spec: {nodeName: node-1, containers: [{name: c, image: i}]}}"):                                                                                  "spec.template.spec.nodeName: is \"node-1\"; remove it",
		deployment("{spec: {containers: [{name: c, image: i}], topologySpreadConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule}]}}"):       "topologySpreadConstraints[0].whenUnsatisfiable: is \"DoNotSchedule\"; want ScheduleAnyway",
		deployment("{spec: {containers: [{name: c, image: i}], affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: z}]}}}}"):     "affinity.podAffinity: is required; use a preferred term",
		deployment("{spec: {containers: [{name: c, image: i}], affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: z}]}}}}"): "affinity.podAntiAffinity: is required; use a preferred term",
	})
}

// refused reads each manifest, in which T is a pod template, and expects the words
// in its refusal.
func refused(t *testing.T, manifests map[string]string) {
	t.Helper()
	for manifest, want := range manifests {
		manifest = strings.ReplaceAll(manifest, "template: T}", "template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}")
		_, err := read(t, manifest)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.400s\nis refused with %v; want %q", manifest, err, want)
			continue
		}
		if !errors.Is(err, appwrapper.ErrInvalid) && !errors.Is(err, ray.ErrInvalid) {
			t.Errorf("%v wraps nothing", err)
		}
	}
}

// TestHostileQuantities: two amounts that would be added are refused before, in
// every kind of object that makes pods and wherever an AppWrapper declares some.
func TestHostileQuantities(t *testing.T) {
	t.Parallel()
	const pods = `{restartPolicy: Never, containers: [{name: c, image: i, resources: {requests: {memory: 1e99999999}}}, {name: d, image: i, resources: {requests: {memory: "1"}}}]}`
	for name, text := range map[string]string{
		"Pod":                v1beta1(item(" {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: "+pods+"}", "")),
		"Job":                v1beta1(item(" {apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: {spec: "+pods+"}}}", "")),
		"Deployment":         v1beta1(item(" {apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {template: {spec: "+pods+"}}}", "")),
		"custompodresources": v1beta1(item(" {apiVersion: v1, kind: ConfigMap, metadata: {name: m}}", "\n      custompodresources: [{replicas: 1, requests: {memory: 1e99999999}, limits: {memory: 1}}]")),
		"negative exponent":  v1beta1(item(" {apiVersion: v1, kind: ConfigMap, metadata: {name: m}}", "\n      custompodresources: [{replicas: 1, requests: {memory: \"1e-99999999\"}}]")),
		"a volume": v1beta1(item(" {apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: v}, spec: {resources: {requests: {storage: 1e99999999}}}}", ""),
			item(" {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}", "")),
		"a quota": v1beta1(item(" {apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {cpu: \"1e-99999999\"}}}", ""),
			item(" {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}", "")),
		"an unknown kind": "apiVersion: workload.codeflare.dev/v1beta2\nkind: AppWrapper\nmetadata: {name: a, namespace: team}\nspec:\n  components:\n" +
			"  - podSets: [{replicas: 1, path: template.spec.pod}]\n    template: {apiVersion: example.com/v1, kind: Thing, metadata: {name: t}, spec: {pod: {spec: " + pods + "}}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree, err := ray.Tree([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			_, err = appwrapper.Read(ray.Shipped(), tree)
			if err == nil || !strings.Contains(err.Error(), " is no quantity; want a Kubernetes quantity") {
				t.Errorf("error %v, want that it is no quantity", err)
			}
		})
	}
}
