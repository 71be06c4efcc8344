package admission

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"muster.dev/muster/pkg/manifest/ray"
)

// Users of the table. All may do the same, but the operator may also update the status of
// RayClusters, by which the policies recognize it.
const (
	tenant     = "tenant"
	operator   = "system:serviceaccount:ray:kuberay-operator"
	dispatcher = "system:serviceaccount:muster-system:muster-dispatcher"
	kubernetes = "system:serviceaccount:kube-system:job-controller"
)

var (
	rayClusters = ray.Resource("rayclusters")
	rayJobs     = ray.Resource("rayjobs")
	wrappers    = schema.GroupVersionResource{Group: "workload.codeflare.dev", Version: "v1beta2", Resource: "appwrappers"}
	pods        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

const (
	podSpec = `"containers":[{"name":"c","image":"i"}]`
	// cluster is the spec of a RayCluster that KubeRay leaves alone.
	cluster = `"managedBy":"kueue.x-k8s.io/multikueue","headGroupSpec":{"rayStartParams":{},"template":{"spec":{` + podSpec + `}}},
		"workerGroupSpecs":[{"groupName":"w","replicas":1,"minReplicas":0,"maxReplicas":4,"rayStartParams":{},"template":{"spec":{` + podSpec + `}}}]`
	// own is the spec of one that a queue may hold.
	own   = `"headGroupSpec":{"rayStartParams":{},"template":{"spec":{` + podSpec + `}}}`
	ofOne = `"labels":{"muster.dev/workload":"one","muster.dev/attempt":"1"}`
	queue = `"labels":{"muster.dev/queue-name":"research"}`
)

// rayCluster is one with this metadata beside its name, and this spec.
func rayCluster(metadata, spec string) string {
	return `{"apiVersion":"ray.io/v1","kind":"RayCluster","metadata":{"name":"made",` + metadata + `},"spec":{` + spec + `}}`
}

func rayJob(metadata, more string) string {
	return `{"apiVersion":"ray.io/v1","kind":"RayJob","metadata":{"name":"made",` + metadata + `},"spec":{"entrypoint":"e",` + more + `"rayClusterSpec":{` + own + `}}}`
}

// present are the objects that requests change, by resource; all are named present.
func present() map[schema.GroupVersionResource]string {
	return map[schema.GroupVersionResource]string{
		rayClusters: `{"apiVersion":"ray.io/v1","kind":"RayCluster","metadata":{"name":"present",` + ofOne + `,"annotations":{"muster.dev/epoch":"3"}},"spec":{` + cluster + `}}`,
		rayJobs:     `{"apiVersion":"ray.io/v1","kind":"RayJob","metadata":{"name":"present",` + queue + `},"spec":{"entrypoint":"e","shutdownAfterJobFinishes":true,"rayClusterSpec":{` + own + `}}}`,
		wrappers:    `{"apiVersion":"workload.codeflare.dev/v1beta2","kind":"AppWrapper","metadata":{"name":"present"},"spec":{"components":[]}}`,
		pods:        `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"present",` + ofOne + `},"spec":{"schedulingGates":[{"name":"muster.dev/placement"}],` + podSpec + `}}`,
		deployments: `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"present",` + ofOne + `},"spec":{"replicas":0,"selector":{"matchLabels":{"a":"b"}},
			"template":{"metadata":{"labels":{"a":"b","muster.dev/workload":"one"}},"spec":{` + podSpec + `}}}}`,
	}
}

// request is one of the table: what a user does, and the refusal, or empty.
type request struct {
	name, user string
	resource   schema.GroupVersionResource
	create     string // an object
	patch      string // of present; without either, present is deleted
	status     bool   // the patch is of the status
	want       string
}

func requests() []request {
	controlled := `"ownerReferences":[{"apiVersion":"ray.io/v1","kind":"RayJob","name":"j","uid":"u","controller":true}]`
	forged := `"annotations":{"muster.dev/user":"root"}`
	huge := `"headGroupSpec":{"rayStartParams":{},"template":{"spec":{"containers":[{"name":"c","image":"i","resources":{"limits":{"cpu":"1e9999"}}}]}}}`
	return []request{
		{name: "a RayCluster without a queue is stamped", user: tenant, resource: rayClusters, create: rayCluster(forged, own)},
		{name: "a RayCluster with a queue is suspended", user: tenant, resource: rayClusters, create: rayCluster(queue, own)},
		{name: "a RayCluster with Kueue's label is suspended", user: tenant, resource: rayClusters, create: rayCluster(`"labels":{"kueue.x-k8s.io/queue-name":"research"}`, own)},
		{name: "a RayCluster with both labels", user: tenant, resource: rayClusters, create: rayCluster(`"labels":{"kueue.x-k8s.io/queue-name":"a","muster.dev/queue-name":"b"},`+forged, own)},
		{name: "a RayCluster with a controller gets no user", user: operator, resource: rayClusters, create: rayCluster(queue+","+controlled+","+forged, own)},
		{name: "the dispatcher's RayCluster with a queue label is not suspended", user: dispatcher, resource: rayClusters, create: rayCluster(queue, own)},
		{name: "a RayCluster of another manager", user: tenant, resource: rayClusters, create: rayCluster(queue, cluster), want: "spec.managedBy: names another manager"},
		{name: "a RayCluster with an amount without end", user: tenant, resource: rayClusters, create: rayCluster(queue, huge), want: "an amount that a container asks for"},
		{name: "the same without a queue", user: tenant, resource: rayClusters, create: rayCluster(forged, huge), want: "an amount that a container asks for"},
		{name: "a RayJob with a queue", user: tenant, resource: rayJobs, create: rayJob(queue, `"shutdownAfterJobFinishes":true,`)},
		{name: "a RayJob that keeps its cluster", user: tenant, resource: rayJobs, create: rayJob(queue, ``), want: "spec.shutdownAfterJobFinishes: is not true"},
		{name: "a RayJob on another's cluster", user: tenant, resource: rayJobs, create: rayJob(queue, `"shutdownAfterJobFinishes":true,"clusterSelector":{"a":"b"},`), want: "spec.clusterSelector: is set"},
		{name: "an AppWrapper is stamped", user: tenant, resource: wrappers, create: `{"apiVersion":"workload.codeflare.dev/v1beta2","kind":"AppWrapper","metadata":{"name":"made",` + forged + `},"spec":{"components":[]}}`},
		{name: "a pod of no workload", user: tenant, resource: pods, create: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"made"},"spec":{` + podSpec + `}}`},

		{name: "replicas of a RayCluster", user: tenant, resource: rayClusters, patch: `[{"op":"replace","path":"/spec/workerGroupSpecs/0/replicas","value":2}]`},
		{name: "the head of a RayCluster", user: tenant, resource: rayClusters, patch: `[{"op":"replace","path":"/spec/headGroupSpec/template/spec/containers/0/image","value":"j"}]`, want: "the head and what KubeRay adds"},
		{name: "a worker's template", user: tenant, resource: rayClusters, patch: `[{"op":"replace","path":"/spec/workerGroupSpecs/0/template/spec/containers/0/image","value":"j"}]`, want: "worker groups and their templates"},
		{name: "a label of Muster's", user: tenant, resource: rayClusters, patch: `[{"op":"remove","path":"/metadata/labels/muster.dev~1workload"}]`, want: "the labels muster.dev/workload, cluster"},
		{name: "an annotation of Muster's", user: tenant, resource: rayClusters, patch: `[{"op":"replace","path":"/metadata/annotations/muster.dev~1epoch","value":"9"}]`, want: "the annotations muster.dev/epoch"},
		{name: "a queue label later", user: tenant, resource: rayClusters, patch: `[{"op":"add","path":"/metadata/labels/muster.dev~1queue-name","value":"a"}]`, want: "the queue label cannot be added"},
		{name: "the operator changes the head", user: operator, resource: rayClusters, patch: `[{"op":"replace","path":"/spec/headGroupSpec/template/spec/containers/0/image","value":"j"}]`},
		{name: "the dispatcher changes the head", user: dispatcher, resource: rayClusters, patch: `[{"op":"replace","path":"/spec/headGroupSpec/template/spec/containers/0/image","value":"j"}]`},
		{name: "the operator writes a status", user: operator, resource: rayClusters, patch: `[{"op":"add","path":"/status","value":{"reason":"r"}}]`, status: true},
		{name: "a tenant writes a status", user: tenant, resource: rayClusters, patch: `[{"op":"add","path":"/status","value":{"reason":"r"}}]`, status: true, want: `cannot patch resource "rayclusters/status"`},

		{name: "a held RayJob is resumed", user: tenant, resource: rayJobs, patch: `[{"op":"replace","path":"/spec/suspend","value":false}]`, want: "spec.suspend: is Muster's to change"},
		{name: "the dispatcher resumes it", user: dispatcher, resource: rayJobs, patch: `[{"op":"replace","path":"/spec/suspend","value":false}]`},
		{name: "the creator of a held RayJob", user: tenant, resource: rayJobs, patch: `[{"op":"replace","path":"/metadata/annotations/muster.dev~1user","value":"x"}]`, want: "the annotations muster.dev/user, user-uid"},
		{name: "the queue of a held RayJob", user: tenant, resource: rayJobs, patch: `[{"op":"replace","path":"/metadata/labels/muster.dev~1queue-name","value":"x"}]`, want: "the queue label cannot be added"},
		{name: "the controller of a held RayJob", user: tenant, resource: rayJobs, patch: `[{"op":"add","path":"/metadata/ownerReferences","value":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u","controller":true}]}]`, want: "the controller of an object with a queue"},
		{name: "another label of a held RayJob", user: tenant, resource: rayJobs, patch: `[{"op":"add","path":"/metadata/labels/a","value":"b"}]`},

		{name: "the spec of an AppWrapper", user: tenant, resource: wrappers, patch: `[{"op":"add","path":"/spec/suspend","value":true}]`, want: "the spec of an AppWrapper cannot be changed"},
		{name: "the creator of an AppWrapper", user: tenant, resource: wrappers, patch: `[{"op":"replace","path":"/metadata/annotations/muster.dev~1user","value":"x"}]`, want: "the annotations muster.dev/user, user-uid"},
		{name: "a label of an AppWrapper", user: tenant, resource: wrappers, patch: `[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`},

		{name: "the gate of a pod", user: tenant, resource: pods, patch: `[{"op":"remove","path":"/spec/schedulingGates"}]`, want: "the gate muster.dev/placement is Muster's"},
		{name: "the node of a pod", user: tenant, resource: pods, patch: `[{"op":"add","path":"/spec/nodeSelector","value":{"a":"b"}}]`, want: "Muster decides on which node"},
		{name: "the dispatcher lifts the gate", user: dispatcher, resource: pods, patch: `[{"op":"remove","path":"/spec/schedulingGates"}]`},
		{name: "Kubernetes lifts the gate", user: kubernetes, resource: pods, patch: `[{"op":"remove","path":"/spec/schedulingGates"}]`},
		{name: "a label of a pod", user: tenant, resource: pods, patch: `[{"op":"add","path":"/metadata/labels/a","value":"b"}]`},
		{name: "the replicas of a Deployment", user: tenant, resource: deployments, patch: `[{"op":"replace","path":"/spec/replicas","value":1}]`},
		{name: "the template of a Deployment", user: tenant, resource: deployments, patch: `[{"op":"remove","path":"/spec/template/metadata/labels/muster.dev~1workload"}]`, want: "the labels muster.dev/workload, cluster"},
		{name: "the gate of a Deployment", user: tenant, resource: deployments, patch: `[{"op":"add","path":"/spec/template/spec/schedulingGates","value":[{"name":"muster.dev/placement"}]}]`, want: "the gate muster.dev/placement of the template"},

		{name: "a RayCluster is deleted", user: tenant, resource: rayClusters},
		{name: "a held RayJob is deleted", user: tenant, resource: rayJobs},
		{name: "an AppWrapper is deleted", user: tenant, resource: wrappers},
		{name: "a pod is deleted", user: tenant, resource: pods},
	}
}
