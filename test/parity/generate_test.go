package parity

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"

	"muster.dev/muster/pkg/manifest/ray"
)

// object is a piece of a manifest.
type object = map[string]any

// generator makes manifests that KubeRay takes, of all that bears on the pods:
// the same seed makes the same manifests.
type generator struct{ *rand.Rand }

func newGenerator(seed uint64, n int) generator {
	return generator{rand.New(rand.NewPCG(seed, uint64(n)))}
}

// oneIn is true once in n times.
func (g generator) oneIn(n int) bool { return g.IntN(n) == 0 }

func pick[T any](g generator, values ...T) T { return values[g.IntN(len(values))] }

// manifest returns the n-th manifest as JSON.
func (g generator) manifest(n int) []byte {
	kind := pick(g, ray.RayCluster, ray.RayCluster, ray.RayJob, ray.RayJob, ray.RayService)
	metadata := object{"name": fmt.Sprintf("p%d", n)}
	if g.oneIn(6) {
		metadata = object{"generateName": fmt.Sprintf("p%d-", n)}
	}
	manifest := object{"apiVersion": pick(g, "ray.io/v1", "ray.io/v1", "ray.io/v1alpha1"), "kind": kind, "metadata": metadata}
	cluster := g.cluster(kind, metadata)
	switch kind {
	case ray.RayCluster:
		manifest["spec"] = cluster
	case ray.RayJob:
		manifest["spec"] = g.job(cluster)
	case ray.RayService:
		manifest["spec"] = object{"rayClusterConfig": cluster, "serveConfigV2": "applications:\n- name: a\n  import_path: a:b\n"}
	}
	if manifest["apiVersion"] == "ray.io/v1alpha1" {
		age(manifest["spec"].(object))
	}
	encoded, err := json.Marshal(manifest)
	if err != nil {
		panic(err) // of maps, lists, texts and numbers: cannot be
	}
	return encoded
}

// age removes what ray.io/v1alpha1 does not have.
func age(spec object) {
	for _, field := range []string{
		"submissionMode", "backoffLimit", "deletionStrategy", "submitterConfig", "gcsFaultToleranceOptions",
	} {
		delete(spec, field)
	}
	for _, inner := range []string{"rayClusterSpec", "rayClusterConfig"} {
		if cluster, ok := spec[inner].(object); ok {
			age(cluster)
		}
	}
	if options, ok := spec["autoscalerOptions"].(object); ok {
		delete(options, "version")
	}
	groups, _ := spec["workerGroupSpecs"].([]any)
	for _, group := range append([]any{spec["headGroupSpec"]}, groups...) {
		if group, ok := group.(object); ok {
			for _, field := range []string{"resources", "labels", "numOfHosts", "suspend", "idleTimeoutSeconds"} {
				delete(group, field)
			}
		}
	}
}

func (g generator) cluster(kind string, metadata object) object {
	spec := object{"rayVersion": "2.52.0"}
	v2 := false
	autoscaling := g.oneIn(3)
	if autoscaling {
		spec["enableInTreeAutoscaling"] = true
		v2 = g.autoscaler(spec)
	}
	switch {
	case g.oneIn(6):
		spec["gcsFaultToleranceOptions"] = object{"redisAddress": "redis:6379"}
	case g.oneIn(10):
		metadata["annotations"] = object{"ray.io/ft-enabled": "true"}
	}
	if kind == ray.RayCluster && g.oneIn(15) {
		spec["suspend"] = true
	}
	head := g.rayGroup(false)
	if g.oneIn(8) {
		head["headService"] = object{"spec": object{"type": "ClusterIP"}}
	}
	spec["headGroupSpec"] = head
	var groups []any
	for i := range g.IntN(4) {
		groups = append(groups, g.workers(i, autoscaling, v2))
	}
	if groups != nil || g.oneIn(2) {
		spec["workerGroupSpecs"] = groups
	}
	if groups == nil {
		delete(spec, "workerGroupSpecs")
	}
	return spec
}

func (g generator) autoscaler(spec object) (v2 bool) {
	options := object{}
	if version := pick(g, "", "v1", "v2"); version != "" {
		options["version"], v2 = version, version == "v2"
	}
	switch g.IntN(4) {
	case 0:
		options["resources"] = object{}
	case 1:
		options["resources"] = object{"limits": object{"cpu": "750m", "memory": "1Gi"}}
	case 2:
		options["resources"] = object{"requests": object{"cpu": "50m"}, "limits": object{"cpu": "1", "memory": "300M"}}
	}
	if len(options) > 0 {
		spec["autoscalerOptions"] = options
	}
	return v2
}

func (g generator) workers(i int, autoscaling, v2 bool) object {
	group := g.rayGroup(true)
	group["groupName"] = fmt.Sprintf("%s-%d", pick(g, "small", "GPU", "w"), i)
	least := g.IntN(3)
	if g.oneIn(2) {
		group["minReplicas"] = least
	} else {
		least = 0
	}
	if g.oneIn(2) {
		group["maxReplicas"] = least + g.IntN(3)
	}
	if !g.oneIn(4) {
		group["replicas"] = g.IntN(5)
	}
	if g.oneIn(4) {
		group["numOfHosts"] = 1 + g.IntN(3)
	}
	if !autoscaling && g.oneIn(8) {
		group["suspend"] = g.oneIn(2)
	}
	if autoscaling && v2 && g.oneIn(4) {
		group["idleTimeoutSeconds"] = 60
	}
	if g.oneIn(10) {
		group["scaleStrategy"] = object{"workersToDelete": []any{}}
	}
	return group
}

// rayGroup is what the head and a group of workers have in common.
func (g generator) rayGroup(worker bool) object {
	group := object{"rayStartParams": object{}, "template": g.template(worker)}
	switch g.IntN(6) {
	case 0:
		group["resources"] = object{"CPU": "7", "GPU": "1"} // Ray's own; no pod asks for it
	case 1:
		group["rayStartParams"] = object{"num-cpus": "3", "num-gpus": "2"}
	}
	if g.oneIn(5) {
		group["labels"] = object{"team": "a", "ray.io/region": "b"}
	}
	return group
}

func (g generator) template(worker bool) object {
	pod := g.pod()
	name := "ray-head"
	if worker {
		name = "ray-worker"
	}
	containers := []any{g.container(name)}
	for i := range g.IntN(3) {
		containers = append(containers, g.container(fmt.Sprintf("beside-%d", i)))
	}
	pod["containers"] = containers
	var inits []any
	for i := range g.IntN(4) {
		init := g.container(fmt.Sprintf("init-%d", i))
		if g.oneIn(2) {
			init["restartPolicy"] = "Always" // a sidecar
		}
		inits = append(inits, init)
	}
	if inits != nil {
		pod["initContainers"] = inits
	}
	template := object{"spec": pod}
	if g.oneIn(4) {
		template["metadata"] = object{"labels": object{"app": "x"}, "annotations": object{"note": "y"}}
	}
	return template
}

// pod is a pod's spec without its containers.
func (g generator) pod() object {
	pod := object{}
	if g.oneIn(3) {
		pod["nodeSelector"] = pick(g, object{"zone": "a"}, object{"zone": "b"}, object{"zone": "a", "gpu": "a100"})
	}
	switch g.IntN(5) {
	case 0:
		pod["tolerations"] = []any{object{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}}
	case 1:
		pod["tolerations"] = []any{
			object{"key": "team", "operator": "Equal", "value": "a"},
			object{"key": "spot", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30},
		}
	}
	if g.oneIn(6) {
		pod["affinity"] = object{"nodeAffinity": object{"requiredDuringSchedulingIgnoredDuringExecution": object{"nodeSelectorTerms": []any{
			object{"matchExpressions": []any{object{"key": "zone", "operator": "NotIn", "values": []any{"c", "d"}}}},
		}}}}
	}
	switch g.IntN(8) {
	case 0:
		pod["runtimeClassName"] = heavyClass
	case 1:
		pod["runtimeClassName"] = "nvidia"
	}
	switch g.IntN(8) {
	case 0:
		pod["resources"] = object{"requests": object{"cpu": "200", "memory": "900Gi"}}
	case 1:
		pod["resources"] = object{"limits": object{"cpu": "200", "memory": "900Gi"}}
	}
	return pod
}

func (g generator) container(name string) object {
	container := object{"name": name, "image": "rayproject/ray:2.52.0"}
	if resources := g.resources(); len(resources) > 0 {
		container["resources"] = resources
	}
	return container
}

// resources is of limits and requests in all their relations, in the notations
// that people use.
func (g generator) resources() object {
	low := object{
		"cpu":    pick[any](g, "100m", 1, "1", "0.5", "1500m", "250m", "0"),
		"memory": pick(g, "128Mi", "1Gi", "1500M", "1e9", "0.5Gi", "2048Ki"),
	}
	high := object{"cpu": pick[any](g, 2, "2500m", "4"), "memory": pick(g, "2Gi", "3G", "2.5Gi")}
	devices := object{}
	switch g.IntN(6) {
	case 0:
		devices["nvidia.com/gpu"] = pick[any](g, 1, "2", 8)
	case 1:
		devices["example.com/fpga"] = 3
	case 2:
		low["ephemeral-storage"], high["ephemeral-storage"] = "1Gi", "2Gi"
	}
	requests, limits := object{}, maps.Clone(devices)
	switch g.IntN(6) {
	case 0: // nothing but devices
	case 1: // limits alone are requests, too
		maps.Copy(limits, high)
	case 2:
		maps.Copy(requests, low)
	case 3: // a request of one resource, a limit of another
		requests["cpu"] = low["cpu"]
		limits["memory"] = high["memory"]
	default:
		maps.Copy(requests, low)
		maps.Copy(limits, high)
	}
	if g.oneIn(2) {
		maps.Copy(requests, devices)
	}
	resources := object{}
	if len(requests) > 0 {
		resources["requests"] = requests
	}
	if len(limits) > 0 {
		resources["limits"] = limits
	}
	return resources
}

func (g generator) job(cluster object) object {
	job := object{"entrypoint": "python train.py", "rayClusterSpec": cluster}
	mode := pick(g, "", "", "K8sJobMode", "HTTPMode", "SidecarMode", "InteractiveMode")
	if mode != "" {
		job["submissionMode"] = mode
	}
	if g.oneIn(15) {
		job["suspend"], job["shutdownAfterJobFinishes"] = true, true
	}
	switch g.IntN(5) {
	case 0:
		job["shutdownAfterJobFinishes"], job["ttlSecondsAfterFinished"] = true, 300
	case 1:
		if job["shutdownAfterJobFinishes"] == nil {
			job["deletionStrategy"] = object{"deletionRules": []any{
				object{"policy": "DeleteCluster", "condition": object{"jobStatus": "FAILED", "ttlSeconds": 100}},
				object{"policy": "DeleteSelf", "condition": object{"jobStatus": "FAILED", "ttlSeconds": 200}},
			}}
		}
	}
	if mode != "InteractiveMode" && g.oneIn(4) {
		job["backoffLimit"] = g.IntN(3)
	}
	if mode != "SidecarMode" && g.oneIn(3) {
		job["submitterConfig"] = object{"backoffLimit": g.IntN(3)}
	}
	if mode != "SidecarMode" && g.oneIn(3) {
		pod := g.pod()
		pod["containers"], pod["restartPolicy"] = []any{g.container("mine")}, pick(g, "Never", "OnFailure")
		if g.oneIn(2) {
			pod["initContainers"] = []any{g.container("before")}
		}
		job["submitterPodTemplate"] = object{"spec": pod}
	}
	return job
}
