package ray

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// Pieces of the manifests that the refusals change.
const (
	someSelector = "nodeSelector: {zone: a}"
	someCounts   = "replicas: 2\n    maxReplicas: 4"
	headParams   = "  headGroupSpec:\n    rayStartParams: {}"
	headName     = "        - name: ray-head\n"
)

// TestRefusalsOfKubeRay: what KubeRay would refuse after the object exists.
func TestRefusalsOfKubeRay(t *testing.T) {
	t.Parallel()
	spec := func(line string) string { return edit(t, glue, "spec:\n  headGroup", "spec:\n  "+line+"\n  headGroup") }
	job := func(line string) string { return edit(t, train, "spec:\n  entry", "spec:\n  "+line+"\n  entry") }
	inJobsCluster := func(line string) string {
		return edit(t, train, "  rayClusterSpec:\n", "  rayClusterSpec:\n    "+line+"\n")
	}
	env := func(name, value string) string {
		return headName + "          env: [{name: " + name + ", value: '" + value + "'}]\n"
	}
	const redis, scaled, v2 = "gcsFaultToleranceOptions: {redisAddress: r}", "enableInTreeAutoscaling: true", "\n  autoscalerOptions: {version: v2}"
	borrowed := "clusterSelector: {ray.io/cluster: a}"
	rules := func(policy, condition string) string {
		return "deletionStrategy: {deletionRules: [{policy: " + policy + ", condition: {" + condition + "}}]}"
	}
	refusedAs(t, map[string]string{
		edit(t, glue, headParams, "  headGroupSpec:\n    rayStartParams: {labels: 'a=b'}"): "spec.headGroupSpec.rayStartParams.labels: is set; use the group's own field labels",
		edit(t, glue, headName, env(autoscalerV2, "1")):                                    `containers[0].env: RAY_enable_autoscaler_v2 is "1" without enableInTreeAutoscaling; set that, too`,
		edit(t, spec(scaled+v2), headName, env(autoscalerV2, "1")):                         "has RAY_enable_autoscaler_v2 beside autoscalerOptions.version; use the latter alone",
		spec("autoscalerOptions: {idleTimeoutSeconds: -1}"):                                "spec.autoscalerOptions.idleTimeoutSeconds: is -1; want zero or more",
		edit(t, spec(scaled+v2), "      spec:\n        containers:\n"+headName, "      spec:\n        restartPolicy: Always\n        containers:\n"+headName): "spec.headGroupSpec.template.spec.restartPolicy: is not Never with autoscaler v2; want Never or nothing",
		edit(t, spec(scaled+v2), someSelector, "restartPolicy: Always"):                                                                                       "spec.workerGroupSpecs[0].template.spec.restartPolicy: is not Never with autoscaler v2",
		edit(t, glue, someCounts, someCounts+"\n    idleTimeoutSeconds: -1"):                                                                                  "spec.workerGroupSpecs[0].idleTimeoutSeconds: is -1; want zero or more",
		edit(t, spec(scaled), someCounts, someCounts+"\n    idleTimeoutSeconds: 9"):                                                                           "idleTimeoutSeconds: is set without autoscaler v2; set autoscalerOptions.version to v2",
		edit(t, spec(redis), "name: glue\n", "name: glue\n  annotations: {ray.io/ft-enabled: 'true'}\n"):                                                      "metadata.annotations: has ray.io/ft-enabled beside gcsFaultToleranceOptions; use gcsFaultToleranceOptions alone",
		edit(t, spec(redis), "name: glue\n", "name: glue\n  annotations: {ray.io/external-storage-namespace: x}\n"):                                           "metadata.annotations: has ray.io/external-storage-namespace beside",
		edit(t, spec(redis), headName, env("REDIS_PASSWORD", "x")):                                                                                            "has RAY_REDIS_ADDRESS or REDIS_PASSWORD beside gcsFaultToleranceOptions",
		edit(t, spec(redis), headParams, "  headGroupSpec:\n    rayStartParams: {redis-password: x}"):                                                         "spec.headGroupSpec.rayStartParams: has redis-password beside gcsFaultToleranceOptions",
		edit(t, glue, headName, env("RAY_REDIS_ADDRESS", "x")):                                                                                                "containers[0].env: has RAY_REDIS_ADDRESS; use gcsFaultToleranceOptions for fault tolerance",
		edit(t, glue, headName, env("REDIS_USERNAME", "x")):                                                                                                   "spec.headGroupSpec: sets the Redis user name; use gcsFaultToleranceOptions.redisUsername",
		spec("authOptions: {enableK8sTokenAuth: true}"):                                                                                                       "spec.authOptions.enableK8sTokenAuth: is true without mode token; set mode to token",
		spec("authOptions: {mode: token, enableK8sTokenAuth: true, secretName: s}"):                                                                           "spec.authOptions.secretName: is set together with enableK8sTokenAuth; choose one of them",
		spec("upgradeStrategy: {type: Rolling}"):                                                                                                              `spec.upgradeStrategy.type: is "Rolling"; want Recreate or None`,

		inJobsCluster("upgradeStrategy: {type: Recreate}"):                       "spec.rayClusterSpec.upgradeStrategy: is set; remove it: KubeRay reads it in a RayCluster alone",
		inJobsCluster("authOptions: {mode: token, enableK8sTokenAuth: true}"):    "spec.rayClusterSpec.authOptions.enableK8sTokenAuth: is true; remove it: KubeRay does not support it for a RayJob",
		job("clusterSelector: {a: b}"):                                           "spec.clusterSelector: has no ray.io/cluster; name the RayCluster in it",
		job(borrowed + "\n  suspend: true"):                                      "spec.clusterSelector: is set together with suspend; choose one of them",
		job(borrowed + "\n  submissionMode: SidecarMode"):                        "spec.clusterSelector: is set in SidecarMode; use another submissionMode",
		job(borrowed + "\n  backoffLimit: 1"):                                    "spec.clusterSelector: is set together with backoffLimit; choose one of them",
		job("submissionMode: SidecarMode\n  submitterConfig: {backoffLimit: 1}"): "spec.submitterConfig: is set in SidecarMode; remove it: the head's pod submits the job",
		job("submitterConfig: {backoffLimit: -1}"):                               "spec.submitterConfig.backoffLimit: is -1; want zero or more",
		job("preRunningDeadlineSeconds: 0"):                                      "spec.preRunningDeadlineSeconds: is 0; want 1 or more",
		job("ttlSecondsAfterFinished: -1"):                                       "spec.ttlSecondsAfterFinished: is -1; want 0 or more",
		job(strings.Replace(rules("DeleteSelf", "jobStatus: FAILED"), "{deletion", "{onSuccess: {policy: DeleteSelf}, deletion", 1)): "spec.deletionStrategy.deletionRules: is set together with onSuccess or onFailure; choose one of them",
		job(borrowed + "\n  " + rules("DeleteCluster", "jobStatus: FAILED")):                                                         "deletionRules[0].policy: is DeleteCluster with clusterSelector; use DeleteSelf or DeleteNone",
		job(rules("DeleteSelf", "jobStatus: FAILED, ttlSeconds: -1")):                                                                "deletionRules[0].condition.ttlSeconds: is -1; want zero or more",
		edit(t, inJobsCluster(scaled), "spec:\n  entry", "spec:\n  "+rules("DeleteWorkers", "jobStatus: FAILED")+"\n  entry"):        "deletionRules[0].policy: is DeleteWorkers with enableInTreeAutoscaling; use DeleteCluster",
		edit(t, train, "name: train\n", "name: train\n  annotations: {muster.dev/idle-time: 1h}\n"):                                  "metadata.annotations[muster.dev/idle-time]: is set; remove it: a RayJob ends by itself or runs; idle is a RayCluster",

		edit(t, serve, "    headGroupSpec:\n", "    authOptions: {mode: token, enableK8sTokenAuth: true}\n    headGroupSpec:\n"): "spec.rayClusterConfig.authOptions.enableK8sTokenAuth: is true; remove it: KubeRay does not support it for a RayService",
	})
}

// TestRefusalsOfPods: what the API server would refuse when KubeRay creates pods,
// and what cannot be planned.
func TestRefusalsOfPods(t *testing.T) {
	t.Parallel()
	const worker = "limits: {cpu: \"4\", memory: 16G, nvidia.com/gpu: 2}"
	pod := func(line string) string { return edit(t, glue, someSelector, line) }
	nodes := func(terms string) string {
		return pod("affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [" + terms + "]}}}")
	}
	near := func(term string) string {
		return pod("affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{" + term + "}]}}")
	}
	spread := func(fields string) string {
		return pod("topologySpreadConstraints: [{topologyKey: z, matchLabelKeys: [ray.io/cluster], labelSelector: {matchLabels: {a: b}}, " + fields + "}]")
	}
	const cluster = "topologyKey: z, matchLabelKeys: [ray.io/cluster]"
	refusedAs(t, map[string]string{
		pod("nodeSelector: {zone: 'a b'}"):                             `nodeSelector.zone: "a b" cannot be the value of a label; a valid label`,
		pod("tolerations: [{key: a, operator: Exists, value: b}]"):     `tolerations[0].value: is "b" with operator Exists; remove it, or use operator Equal`,
		pod("tolerations: [{operator: Equal, value: b}]"):              "tolerations[0].key: is empty; want a key, or operator Exists for all taints",
		pod("tolerations: [{key: a, operator: Exists, effect: Flee}]"): `tolerations[0].effect: is "Flee"; want NoSchedule, PreferNoSchedule, NoExecute or nothing`,
		nodes(""): "nodeSelectorTerms: is empty; want at least one term",
		nodes("{matchExpressions: [{key: a, operator: Like}]}"):                  `matchExpressions[0].operator: is "Like"; want In, NotIn, Exists, DoesNotExist, Gt or Lt`,
		nodes("{matchExpressions: [{key: a, operator: Exists, values: [b]}]}"):   "matchExpressions[0].values: has 1 values with operator Exists; want no values",
		nodes("{matchExpressions: [{key: a, operator: Gt, values: [b]}]}"):       "matchExpressions[0].values: has 1 values with operator Gt; want one whole number",
		nodes("{matchFields: [{key: metadata.uid, operator: In, values: [b]}]}"): `matchFields[0]: is "metadata.uid In [b]"; want metadata.name In or NotIn one name`,

		near("matchLabelKeys: [ray.io/cluster]"):                                           "podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: is empty; want the label whose values are the domains",
		near(cluster + ", namespaces: [a]"):                                                "[0].namespaces: is set; remove it: Muster plans affinity within the gang alone",
		near(cluster + ", mismatchLabelKeys: [a]"):                                         "[0].mismatchLabelKeys: is set; remove it: Muster plans affinity within the gang alone",
		near(cluster + ", labelSelector: {matchExpressions: [{key: a, operator: Like}]}"):  "[0].labelSelector: is not valid: \"Like\" is not a valid label selector operator; want matchLabels and matchExpressions",
		spread("maxSkew: 1, whenUnsatisfiable: Maybe"):                                     `topologySpreadConstraints[0].whenUnsatisfiable: is "Maybe"; want DoNotSchedule or ScheduleAnyway`,
		spread("maxSkew: 0, whenUnsatisfiable: DoNotSchedule"):                             "topologySpreadConstraints[0].maxSkew: is 0; want 1 or more",
		spread("maxSkew: 1, whenUnsatisfiable: DoNotSchedule, nodeAffinityPolicy: Ignore"): `nodeAffinityPolicy: is "Ignore"; want Honor or nothing`,

		edit(t, glue, "name: ray-worker", "name: Ray_Worker"):                                    `containers[0].name: "Ray_Worker" cannot name a container; a lowercase RFC 1123 label`,
		edit(t, glue, worker, worker+"\n          ports: [{containerPort: 1, hostPort: 70000}]"): "ports[0].hostPort: is 70000; want a port from 1 to 65535, or nothing",
		edit(t, glue, worker, "limits: {'a b': 1}"):                                              `resources: "a b" cannot name a resource;`,
		pod("resourceClaims: [{name: gpu, resourceClaimName: c}]"):                               "spec.workerGroupSpecs[0].template.spec.resourceClaims: is set; remove it: Muster does not plan dynamic resources",
		edit(t, glue, "    rayStartParams: {}\n    template:\n      spec:\n        nodeSelector", "    rayStartParams: {}\n    template:\n      metadata: {annotations: {kueue.x-k8s.io/podset-required-topology: block, kueue.x-k8s.io/podset-slice-required-topology: rack}}\n      spec:\n        nodeSelector"): "template.metadata.annotations.podset-slice-required-topology: is set without podset-slice-size; set how many pods a slice has",
		"? [a, b]\n: c\n": "has a key that is no text; want names of fields as keys",
	})
}

// TestDeletionNeedsItsGate: an operator without the feature gate would ignore it.
func TestDeletionNeedsItsGate(t *testing.T) {
	t.Parallel()
	operator, err := ReadOperator([]byte("featureGates: {" + gateDeletionPolicy + ": false}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for manifest, want := range map[string]string{
		edit(t, train, "spec:\n  entry", "spec:\n  deletionStrategy: {onSuccess: {policy: DeleteSelf}, onFailure: {policy: DeleteSelf}}\n  entry"): fmt.Sprintf("spec.deletionStrategy: is set, and the operator's feature gate %s is off; use shutdownAfterJobFinishes, or turn the gate on", gateDeletionPolicy),
		edit(t, glue, someCounts, "suspend: true"): fmt.Sprintf("spec.workerGroupSpecs[0].suspend: is true, and the operator's feature gate %s is off; remove the group, or turn the gate on", gateDeletionPolicy),
	} {
		t.Run(manifest, func(t *testing.T) {
			if _, err := operator.Read([]byte(manifest)); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q", err, want)
			}
		})
	}
}

func refusedAs(t *testing.T, manifests map[string]string) {
	t.Helper()
	for manifest, want := range manifests {
		if _, err := Read([]byte(manifest)); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nis refused with %v; want %q", manifest, err, want)
		}
	}
}
