package mistakes

import "strings"

// cluster is a good RayCluster with pairs of old and new text replaced.
func cluster(changes ...string) string {
	return strings.NewReplacer(changes...).Replace(`apiVersion: ray.io/v1
kind: RayCluster
metadata:
  name: glue
spec:
  headGroupSpec:
    template:
      spec:
        containers:
        - name: ray-head
          image: rayproject/ray:2.52.0
          resources: {limits: {cpu: 1, memory: 1Gi}}
  workerGroupSpecs:
  - groupName: workers
    replicas: 2
    minReplicas: 2
    maxReplicas: 2
    template:
      spec:
        containers:
        - name: ray-worker
          image: rayproject/ray:2.52.0
          resources: {limits: {cpu: 2, memory: 2Gi, nvidia.com/gpu: 1}}
`)
}

// job is a good RayJob with pairs of old and new text replaced.
func job(changes ...string) string {
	return strings.NewReplacer(changes...).Replace(strings.NewReplacer(
		"kind: RayCluster", "kind: RayJob", "spec:\n  headGroupSpec", "spec:\n  entrypoint: python train.py\n  rayClusterSpec:\n    headGroupSpec",
		"\n    template", "\n      template", "\n      spec:", "\n        spec:", "\n        containers", "\n          containers", "\n        - name", "\n          - name",
		"\n          image", "\n            image", "\n          resources", "\n            resources", "\n  workerGroupSpecs", "\n    workerGroupSpecs",
		"\n  - groupName", "\n    - groupName", "\n    replicas", "\n      replicas", "\n    minReplicas", "\n      minReplicas", "\n    maxReplicas", "\n      maxReplicas",
	).Replace(cluster()))
}

const submitIntro = "The exit code, and what `muster submit -f FILE` prints. Over NATS and HTTP the reason is the same."

// submitting makes a group of manifests that are submitted.
func submitting(title string) (g *group, add func(name, typed, manifest string, flags ...string)) {
	g = &group{title: title, intro: submitIntro}
	return g, func(name, typed, manifest string, flags ...string) {
		g.mistakes = append(g.mistakes, mistake{name: name, typed: typed, give: func(w *world) string {
			return w.run(map[string]string{"job.yaml": manifest}, append([]string{"submit", "-f", "job.yaml"}, flags...)...)
		}})
	}
}

// changed adds manifests that differ from a good one in one text.
type change struct{ name, old, replacement string }

// manifests are wrong Ray objects.
func manifests() group {
	g, add := submitting("Manifests of Ray objects")
	add("A file that is not YAML", "", "{ this: is: no: manifest\n")
	add("A tab in YAML", "", "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata:\n\tname: glue\n")
	add("A key twice", "", cluster("kind: RayCluster", "kind: RayCluster\nkind: RayJob"))
	add("Aliases of YAML", "", "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: &m {name: x}\nspec: *m\n")
	add("A list instead of an object", "", "- a\n- b\n")
	for _, c := range []change{
		{"Another kind", "kind: RayCluster", "kind: Deployment"},
		{"A kind that is misspelt", "kind: RayCluster", "kind: Raycluster"},
		{"A RayCronJob", "kind: RayCluster", "kind: RayCronJob"},
		{"Another version of the API", "ray.io/v1", "ray.io/v2"},
		{"No kind", "kind: RayCluster\n", ""},
		{"No name", "  name: glue", "  labels: {}"},
		{"A name that Kubernetes refuses", "name: glue", "name: Not_A_Name"},
		{"A name with a path", "name: glue", "name: ../../glue"},
		{"A name that is too long", "name: glue", "name: " + strings.Repeat("x", 80)},
		{"A name that is a number", "name: glue", "name: 7"},
		{"A foreign namespace", "name: glue", "name: glue\n  namespace: kube-system"},
		{"A namespace with an invalid name", "name: glue", "name: glue\n  namespace: My Space"},
		{"A label whose value is a number", "name: glue", "name: glue\n  labels: {team: 7}"},
		{"A label with an invalid key", "name: glue", "name: glue\n  labels: {\"my team\": a}"},
		{"A label with an invalid value", "name: glue", "name: glue\n  labels: {team: \"a b\"}"},
		{"An annotation that only Muster sets", "name: glue", "name: glue\n  annotations: {muster.dev/identity: admin}"},
		{"A finalizer", "name: glue", "name: glue\n  finalizers: [example.com/keep]"},
		{"A priority class of a label that does not exist", "name: glue", "name: glue\n  labels: {kueue.x-k8s.io/priority-class: urgent}"},
		{"A run time that is not a duration", "name: glue", "name: glue\n  annotations: {muster.dev/run-time: soon}"},
		{"A start that does not exist", "name: glue", "name: glue\n  annotations: {muster.dev/start: late}"},
		{"A run time that is negative", "name: glue", "name: glue\n  annotations: {muster.dev/run-time: -5m}"},
		{"No head", "headGroupSpec", "headGroup"},
		{"No containers", "containers:\n        - name: ray-head\n          image: rayproject/ray:2.52.0\n          resources: {limits: {cpu: 1, memory: 1Gi}}", "containers: []"},
		{"A container without an image", "          image: rayproject/ray:2.52.0\n          resources: {limits: {cpu: 1,", "          resources: {limits: {cpu: 1,"},
		{"A count that is negative", "    replicas: 2", "    replicas: -2"},
		{"A count that is a fraction", "    replicas: 2", "    replicas: 1.5"},
		{"A count that is a word", "    replicas: 2", "    replicas: two"},
		{"A count that is absurd", "    replicas: 2\n    minReplicas: 2\n    maxReplicas: 2", "    replicas: 99999999\n    minReplicas: 2\n    maxReplicas: 99999999"},
		{"A minimum above the maximum", "    minReplicas: 2", "    minReplicas: 9"},
		{"A group without a name", "groupName: workers", "rayStartParams: {}"},
		{"A quantity that does not parse", "memory: 2Gi", "memory: two gigs"},
		{"A quantity with the wrong unit", "memory: 2Gi", "memory: 2GB"},
		{"A quantity that is negative", "cpu: 2,", "cpu: -2,"},
		{"A quantity that overflows", "memory: 2Gi", "memory: 99999999999999999999Ei"},
		{"Half of a GPU", "nvidia.com/gpu: 1", "nvidia.com/gpu: 500m"},
		{"A resource with an invalid name", "nvidia.com/gpu: 1", "\"nvidia gpu\": 1"},
		{"A request above its limit", "resources: {limits: {cpu: 2,", "resources: {requests: {cpu: 4}, limits: {cpu: 2,"},
		{"A privileged container", "- name: ray-worker", "- name: ray-worker\n          securityContext: {privileged: true}"},
		{"A directory of the node", "        containers:\n        - name: ray-worker", "        volumes: [{name: root, hostPath: {path: /}}]\n        containers:\n        - name: ray-worker"},
		{"The network of the node", "        containers:\n        - name: ray-worker", "        hostNetwork: true\n        containers:\n        - name: ray-worker"},
		{"A node named by the pod", "        containers:\n        - name: ray-worker", "        nodeName: gpu-0\n        containers:\n        - name: ray-worker"},
		{"A scheduler of one's own", "        containers:\n        - name: ray-worker", "        schedulerName: mine\n        containers:\n        - name: ray-worker"},
	} {
		add(c.name, "", cluster(c.old, c.replacement))
	}
	add("More pods than the queue allows", "--queue limited", cluster("eplicas: 2", "eplicas: 9"), "--queue", "limited")
	add("A higher priority than the queue allows", "--queue limited --priority 11", cluster(), "--queue", "limited", "--priority", "11")
	add("A longer run than the queue allows", "--queue limited", cluster("name: glue", "name: glue\n  annotations: {muster.dev/max-run-time: 2h}"), "--queue", "limited")
	add("A queue that is misspelt", "--queue defualt", cluster(), "--queue", "defualt")
	add("Two namespaces", "--namespace other", cluster("name: glue", "name: glue\n  namespace: default"), "--namespace", "other")
	add("A job with a cluster that exists", "", job("  entrypoint", "  clusterSelector: {ray.io/cluster: mine}\n  entrypoint"))
	return *g
}
