package ray

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"muster.dev/muster/pkg/message/event"
)

// TestRefusals: each message says where, what and what would be right.
func TestRefusals(t *testing.T) {
	t.Parallel()
	const cronJob = `kind: is "RayCronJob", whose RayJobs KubeRay would create itself, past the queue; submit spec.jobTemplate as a RayJob at each of its times`
	counts := "replicas: 2\n    maxReplicas: 4"
	worker := "limits: {cpu: \"4\", memory: 16G, nvidia.com/gpu: 2}"
	selector := "nodeSelector: {zone: a}"
	group := glue[strings.Index(glue, "  - groupName"):]
	inSpec := func(line string) string { return edit(t, glue, "spec:\n  headGroup", "spec:\n  "+line+"\n  headGroup") }
	inJob := func(line string) string { return edit(t, train, "spec:\n  entry", "spec:\n  "+line+"\n  entry") }
	with := func(pairs ...string) string { return edit(t, glue, pairs...) }
	for _, c := range []struct{ name, manifest, want string }{
		{"nothing", "", "manifest: is empty; want one RayCluster, RayJob or RayService in JSON or YAML"},
		{"only comments", "# nothing\n", "manifest: is empty"},
		{"a word", "hello", "manifest: is a text; want an object with apiVersion, kind, metadata and spec"},
		{"a list", "[1, 2]", "manifest: is a list; want an object"},
		{"broken JSON", `{"kind": "RayCluster",`, "manifest: is neither JSON nor YAML: yaml: line 1"},
		{"broken YAML", "kind: [", "manifest: is neither JSON nor YAML: yaml: line 1"},
		{"binary", "\xff\xfe\x00", "manifest: is not UTF-8 text"},
		{"NUL", `{"kind": "Ray\u0000"}`, "kind: contains the character U+0000; remove it"},
		{"two documents", glue + "---\n" + glue, "manifest: holds more than one YAML document; submit each on its own"},
		{"anchor", with("spec:\n  headGroup", "spec: &s\n  headGroup"), `spec (line 6): has the YAML anchor "&s"; remove it`},
		{"billion laughs", "a: &a [x]\nb: [*a, *a]", `a (line 1): has the YAML anchor "&a"`},
		{"alias", "b: *a", "unknown anchor 'a' referenced"},
		{"merge key", "a:\n  <<: {b: 1}", "a (line 2): has a YAML merge key; write the fields out"},
		{"tag", "a: !!binary aGk=", `a (line 1): has the YAML tag "!!binary"; remove it`},
		{"key twice in YAML", with("name: glue", "name: glue\n  name: glue2"), `metadata (line 5): has the key "name" twice, first in line 4; keep one`},
		{"key twice in JSON", `{"a": {"b": 1, "b": 2}}`, `a: has the key "b" twice; keep one`},
		{"deep JSON", strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100), "is nested more than 64 deep"},
		{"deep YAML", "a: " + strings.Repeat("[", 100) + strings.Repeat("]", 100), "is nested more than 64 deep"},
		{"very deep", strings.Repeat("[", 100_000), "manifest: is neither JSON nor YAML"},
		{"too large", strings.Repeat(" ", event.MaxSubmission) + "{}", "manifest: has 524290 bytes; at most 524288 are accepted"},

		{"no kind", "apiVersion: ray.io/v1", `kind: is ""; want RayCluster, RayJob or RayService`},
		{"wrong kind", with("kind: RayCluster", "kind: RayThing"), `kind: is "RayThing"; want RayCluster, RayJob or RayService`},
		{"kind of another type", with("kind: RayCluster", "kind: 7"), "kind: is the number 7; want a text"},
		{"wrong version", with("ray.io/v1", "ray.io/v2"), `apiVersion: is "ray.io/v2"; want ray.io/v1`},
		{"no metadata", "apiVersion: ray.io/v1\nkind: RayJob", "metadata: is null; want an object with name or generateName"},
		{"no name", with("name: glue\n", "labels: {}\n"), "metadata.name: is missing, and so is generateName; set one of them"},
		{"upper case", with("name: glue", "name: Glue"), `metadata.name: "Glue" cannot be the name of a RayCluster; a DNS-1035 label must consist of lower case`},
		{"starts with a digit", with("name: glue", "name: 1glue"), `metadata.name: "1glue" cannot be the name of a RayCluster`},
		{"long name", with("name: glue", "name: "+strings.Repeat("g", 54)), "has 54 characters; KubeRay allows at most 53 for a RayCluster"},
		{"long name of a job", edit(t, train, "name: train", "name: "+strings.Repeat("g", 48)), "has 48 characters; KubeRay allows at most 47 for a RayJob"},
		{"long generateName", with("name: glue", "generateName: "+strings.Repeat("g", 46)), "metadata.generateName:"},
		{"bad generateName", with("name: glue", "generateName: g_"), `metadata.generateName: "g_" cannot be the name of a RayCluster`},
		{"bad namespace", with("namespace: research", "namespace: Re/search"), `metadata.namespace: "Re/search" cannot be the name of a namespace; a lowercase RFC 1123 label`},
		{"owned", with("name: glue", "name: glue\n  ownerReferences: [{kind: Pod}]"), "metadata.ownerReferences: is set; remove it"},
		{"finalizers", with("name: glue", "name: glue\n  finalizers: [a/b]"), "metadata.finalizers: is set; remove it"},
		{"no spec", glue[:strings.Index(glue, "spec:")], "spec: is null; want an object with what to run"},

		{"unknown field", inSpec("headGroup: {}"), "spec.headGroup: is no field of KubeRay v1.6.2; correct its name or place, or remove it"},
		{"unknown field in a pod", with(selector, "nodeselector: {zone: a}"), "spec.workerGroupSpecs[0].template.spec.nodeselector: is no field"},
		{"wrong type", with("replicas: 2\n", "replicas: two\n"), "spec.workerGroupSpecs[0].replicas: is \"two\"; want a whole number of 32 bits"},
		{"too large a number", with("replicas: 2\n", "replicas: 30000000000\n"), "spec.workerGroupSpecs[0].replicas: is 30000000000; want a whole number of 32 bits"},
		{"a fraction", with("replicas: 2\n", "replicas: 1.5\n"), "spec.workerGroupSpecs[0].replicas: is 1.5; want a whole number of 32 bits"},
		{"a text for an object", with(selector, "nodeSelector: zone"), "nodeSelector: is \"zone\"; want an object"},

		{"no head", "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: a}\nspec: {}", "spec.headGroupSpec: is missing; a cluster has a head"},
		{"no containers of the head", "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: a}\nspec: {headGroupSpec: {}}", "spec.headGroupSpec.template.spec.containers: is empty; want at least one container"},
		{"no containers of workers", with(group, "  - groupName: gpu\n"), "spec.workerGroupSpecs[0].template.spec.containers: is empty"},
		{"negative replicas", with("replicas: 2\n", "replicas: -2\n"), "spec.workerGroupSpecs[0].replicas: is -2; want zero or more"},
		{"negative minimum", with(counts, "minReplicas: -1"), "spec.workerGroupSpecs[0].minReplicas: is -1; want zero or more"},
		{"minimum above maximum", with(counts, "minReplicas: 5\n    maxReplicas: 4"), "spec.workerGroupSpecs[0].minReplicas: 5 is more than maxReplicas, which is 4"},
		{"no hosts", with(counts, "numOfHosts: 0"), "spec.workerGroupSpecs[0].numOfHosts: is 0; want one or more"},
		{"absurd replicas", with(counts, "replicas: 2147483647"), "spec.workerGroupSpecs[0].replicas: makes 2147483647 pods of the group and at least 2147483648 of the gang; a gang has at most 10000 pods"},
		{"product overflows", with(counts, "replicas: 2147483647\n    numOfHosts: 2147483647"), "makes 4611686014132420609 pods"},
		{"too many groups", glue + strings.Repeat(strings.Replace(group, "groupName: gpu", "groupName: x", 1), maxGroups), "spec.workerGroupSpecs: has 33 groups; at most 32 are accepted"},
		{"a name twice", glue + group, `spec.workerGroupSpecs[1].groupName: "gpu" is the name of spec.workerGroupSpecs[0] already`},
		{"reserved name", with("groupName: gpu", "groupName: headgroup"), `spec.workerGroupSpecs[0].groupName: is "headgroup"; the name is reserved`},
		{"reserved name in a job", edit(t, train, "groupName: gpu", "groupName: submitter"), `groupName: is "submitter"; the name is reserved`},
		{"bad name of a group", with("groupName: gpu", "groupName: a_b"), `spec.workerGroupSpecs[0].groupName: "a_b" cannot name a group of pods`},

		{"no quantity", with(worker, "limits: {cpu: four}"), `spec.workerGroupSpecs[0].template.spec.containers[0].resources.limits.cpu: "four" is no quantity; want a Kubernetes quantity such as "500m", "4" or "16Gi"`},
		{"negative quantity", with(worker, "limits: {memory: -1Gi}"), `resources.limits.memory: "-1Gi" is negative; want zero or more`},
		{"quantity beyond int64", with(worker, "limits: {memory: 9Ei}"), `resources.limits.memory: "9Ei" is more than can be counted`},
		{"quantity that takes hours", with(worker, "limits: {memory: 1e1000000000}"), `"1e1000000000" is no quantity`},
		{"a list as quantity", with(worker, "limits: {cpu: [1]}"), "resources.limits.cpu: is a list; want a Kubernetes quantity"},
		{"sum beyond int64", with(worker, "limits: {memory: 7Ei}\n        - {name: two, image: i, resources: {limits: {memory: 7Ei}}}"), "spec.workerGroupSpecs[0].template.spec: the containers together request too much"},
		{"request above limit", with(worker, "limits: {cpu: 1}\n            requests: {cpu: 2}"), "requests.cpu: 2 is more than the limit, which is 1"},
		{"device without limit", with(worker, "requests: {nvidia.com/gpu: 1}"), "requests.nvidia.com/gpu: differs from the limit; want the same amount"},
		{"half a device", with(worker, "limits: {nvidia.com/gpu: 500m}"), `resources.limits.nvidia.com/gpu: "500m" is not a whole number; want whole ones, such as "1"`},
		{"short name of a device", with(worker, "limits: {gpu: 1}"), `"gpu" is no resource of Kubernetes; want its full name`},

		{"name of a container twice", with(worker, worker+"\n        - {name: ray-worker, image: i}"), `containers[1].name: "ray-worker" is the name of another container`},
		{"name that KubeRay uses", with(selector, "initContainers: [{name: wait-gcs-ready, image: i}]"), `"wait-gcs-ready" is the name of another container of the pod, or of one that KubeRay adds`},
		{"no image", with("name: ray-worker\n          image: rayproject/ray:2.52.0", "name: ray-worker"), "containers[0].image: is empty"},
		{"node name", with(selector, "nodeName: n1"), `spec.workerGroupSpecs[0].template.spec.nodeName: is "n1"; remove it`},
		{"scheduler", with(selector, "schedulerName: volcano"), `schedulerName: is "volcano"; remove it`},
		{"our gate", with(selector, "schedulingGates: [{name: muster.dev/placement}]"), `schedulingGates: has "muster.dev/placement"; remove it`},
		{"spreading", with(selector, "topologySpreadConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule}]"), `topologySpreadConstraints[0]: may match pods of others; add matchLabelKeys: [ray.io/cluster]`},
		{"anti-affinity", with(selector, "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: z}]}}"), "podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]: may match pods of others; add matchLabelKeys: [ray.io/cluster]"},
		{"host network", with(selector, "hostNetwork: true"), "hostNetwork: is true; remove it"},
		{"overhead", with(selector, "overhead: {cpu: 1}"), "overhead: is set without runtimeClassName; remove it"},
		{"host port", with(worker, worker+"\n          ports: [{containerPort: 1, hostPort: 80}, {containerPort: 2, hostPort: 80}]"), "containers: ask for host port 80 twice"},
		{"bad selector", with(selector, "nodeSelector: {'a b': c}"), `nodeSelector: "a b" cannot be the key of a label`},
		{"bad toleration", with(selector, "tolerations: [{key: a, operator: Like}]"), `tolerations[0].operator: is "Like"; want Exists or Equal`},
		{"bad affinity", with(selector, "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In}]}]}}}"), "matchExpressions[0].values: has 0 values with operator In; want at least one value"},

		{"suspended", inSpec("suspend: true"), "spec.suspend: is true; remove it"},
		{"managed by another", inSpec("managedBy: kueue.x-k8s.io/multikueue"), `spec.managedBy: is "kueue.x-k8s.io/multikueue"; remove it`},
		{"annotations of the head's service", inSpec("headServiceAnnotations: {'a b': c}"), "spec.headServiceAnnotations[\"a b\"]: cannot be a key; "},
		{"our labels", with(counts, counts+"\n    labels: {muster.dev/workload: x}"), `labels: has "muster.dev/workload"; remove it`},
		{"resources twice", with(counts, counts+"\n    resources: {GPU: '1'}", "rayStartParams: {}\n    template:\n      spec:\n        nodeSelector", "rayStartParams: {num-gpus: '1'}\n    template:\n      spec:\n        nodeSelector"), "spec.workerGroupSpecs[0].resources: is set together with rayStartParams.num-gpus"},
		{"token without version", inSpec("authOptions: {mode: token}"), `spec.rayVersion: is ""; token authentication needs 2.52.0 or later`},

		{"a cluster of another owner", inJob("clusterSelector: {ray.io/cluster: a}"), "spec.clusterSelector: is set; give the job a rayClusterSpec of its own"},
		{"suspended job", inJob("suspend: true"), "spec.suspend: is true; remove it"},
		{"no cluster", "apiVersion: ray.io/v1\nkind: RayJob\nmetadata: {name: a}\nspec: {entrypoint: x}", "spec.rayClusterSpec: is missing"},
		{"unknown mode", inJob("submissionMode: Mail"), `spec.submissionMode: is "Mail"; want K8sJobMode`},
		{"negative backoff", inJob("backoffLimit: -1"), "spec.backoffLimit: is -1; want 0 or more"},
		{"no deadline", inJob("activeDeadlineSeconds: 0"), "spec.activeDeadlineSeconds: is 0; want 1 or more"},
		{"ttl alone", inJob("ttlSecondsAfterFinished: 9"), "spec.ttlSecondsAfterFinished: is 9 without shutdownAfterJobFinishes"},
		{"template with a sidecar", inJob("submissionMode: SidecarMode\n  submitterPodTemplate: {}"), "spec.submitterPodTemplate: is set in SidecarMode"},
		{"submitter restarts", inJob("submitterPodTemplate: {spec: {containers: [{name: a, image: b}]}}"), `spec.submitterPodTemplate.spec.restartPolicy: is ""; want Never or OnFailure`},
		{"no dashboard", edit(t, train, "- name: ray-head\n", "- name: ray-head\n            ports: [{containerPort: 6379, name: gcs}]\n"), `ports: lists no port named "dashboard"`},
		{"rules and shutdown", inJob("shutdownAfterJobFinishes: true\n  deletionStrategy: {deletionRules: [{policy: DeleteCluster, condition: {jobStatus: FAILED}}]}"), "spec.deletionStrategy.deletionRules: is set together with shutdownAfterJobFinishes"},
		{"rule twice", inJob("deletionStrategy: {deletionRules: [{policy: DeleteSelf, condition: {jobStatus: FAILED}}, {policy: DeleteSelf, condition: {jobStatus: FAILED}}]}"), "deletionRules[1]: is a second rule of DeleteSelf for jobStatus FAILED; keep one"},
		{"rule without a state", inJob("deletionStrategy: {deletionRules: [{policy: DeleteSelf, condition: {}}]}"), "deletionRules[0].condition: is empty; want one of"},
		{"rules in the wrong order", inJob("deletionStrategy: {deletionRules: [{policy: DeleteWorkers, condition: {jobStatus: FAILED, ttlSeconds: 9}}, {policy: DeleteSelf, condition: {jobStatus: FAILED, ttlSeconds: 3}}]}"), "has DeleteSelf after 3 s for jobStatus FAILED, sooner than what deletes less; give it the same or more ttlSeconds"},
		{"half of the policies", inJob("deletionStrategy: {onSuccess: {policy: DeleteSelf}}"), "spec.deletionStrategy: is incomplete; want deletionRules, or both"},
		{"empty policy", inJob("deletionStrategy: {onSuccess: {}, onFailure: {policy: DeleteSelf}}"), "spec.deletionStrategy.onSuccess.policy: is missing; want DeleteCluster"},
		{"keep and shut down", inJob("shutdownAfterJobFinishes: true\n  deletionStrategy: {onSuccess: {policy: DeleteNone}, onFailure: {policy: DeleteNone}}"), "is DeleteNone together with shutdownAfterJobFinishes; choose one"},
		{"no environment", inJob("runtimeEnvYAML: '{a: ['"), "spec.runtimeEnvYAML: does not decode: "},
		{"an environment that grows", inJob("runtimeEnvYAML: '{a: &a [1, 1], b: [*a, *a]}'"), "runtimeEnvYAML.a (line 1): has the YAML anchor"},
		{"retries in InteractiveMode", inJob("submissionMode: InteractiveMode\n  backoffLimit: 1"), "spec.backoffLimit: is 1 in InteractiveMode; remove it"},
		{"sidecar and restarts", edit(t, train, "spec:\n  entry", "spec:\n  submissionMode: SidecarMode\n  entry", "- name: ray-head\n", "- name: ray-head\n", "      spec:\n          containers:\n          - name: ray-head", "      spec:\n          restartPolicy: Always\n          containers:\n          - name: ray-head"), `restartPolicy: is "Always" in SidecarMode; want Never or nothing`},

		{"autoscaled without a maximum", edit(t, glue, "spec:\n  headGroup", "spec:\n  enableInTreeAutoscaling: true\n  headGroup", "    maxReplicas: 4\n", ""), "spec.workerGroupSpecs[0].maxReplicas: lets the group grow to 2147483647 pods; an autoscaled cluster is admitted at its maximum, of at most 10000 pods: set maxReplicas, or annotate it muster.dev/autoscaling: minimum"},
		{"autoscaled at a size of one's own", with("name: glue\n", "name: glue\n  annotations: {muster.dev/autoscaling: medium}\n"), `metadata.annotations[muster.dev/autoscaling]: is "medium"; want maximum or minimum`},
		{"suspended and autoscaled group", edit(t, glue, "spec:\n  headGroup", "spec:\n  enableInTreeAutoscaling: true\n  headGroup", counts, counts+"\n    suspend: true"), "spec.workerGroupSpecs[0].suspend: is true with enableInTreeAutoscaling; remove the group"},
		{"unknown runtime class", with(selector, "runtimeClassName: kata"), `runtimeClassName: is "kata", of which Muster does not know the overhead; give the pod's overhead, or name the class under runtimeClasses in the KubeRay profile`},
		{"another overhead than the class's", with(selector, "runtimeClassName: nvidia\n        overhead: {cpu: 1}"), `overhead: is not that of runtime class "nvidia"; remove it`},
		{"bad service account", with(selector, "serviceAccountName: $KSA"), `serviceAccountName: "$KSA" cannot name a service account`},
		{"hosts in the old version", edit(t, glue, "ray.io/v1", "ray.io/v1alpha1", counts, counts+"\n    numOfHosts: 2"), "spec.workerGroupSpecs[0].numOfHosts: is no field of ray.io/v1alpha1; set apiVersion: ray.io/v1, or correct its name or place"},
		{"dynamic resources", with(worker, "claims: [{name: gpu}]"), "resources.claims: is set; remove it: Muster does not plan dynamic resources"},

		{"upgrade by a second cluster", edit(t, serve, "spec:\n  serve", "spec:\n  upgradeStrategy: {type: NewCluster}\n  serve"), `spec.upgradeStrategy.type: is "NewCluster", with which KubeRay starts a second cluster beside the first; remove it, or set it to None; to upgrade, submit the new version under another name`},
		{"upgrade in steps", edit(t, serve, "spec:\n  serve", "spec:\n  upgradeStrategy: {type: NewClusterWithIncrementalUpgrade}\n  serve"), `is "NewClusterWithIncrementalUpgrade", with which KubeRay starts a second cluster`},
		{"unknown upgrade", edit(t, serve, "spec:\n  serve", "spec:\n  upgradeStrategy: {type: Rolling}\n  serve"), `spec.upgradeStrategy.type: is "Rolling"; want None`},
		{"named service of the head", edit(t, serve, "    headGroupSpec:\n", "    headGroupSpec:\n      headService: {metadata: {name: a}}\n"), `headService.metadata.name: is "a"; remove it: KubeRay names`},
		{"Serve's configuration", edit(t, serve, "serveConfigV2: 'applications: []'", "serveConfigV2: 'a: ['"), "spec.serveConfigV2: does not decode: "},
		{"time to initialize", edit(t, serve, "name: serve\n", "name: serve\n  annotations: {ray.io/initializing-timeout: soon}\n"), `metadata.annotations[ray.io/initializing-timeout]: is "soon"; want a time such as "30m", or a number of seconds`},
		{"deletion in the past", edit(t, serve, "spec:\n  serve", "spec:\n  rayClusterDeletionDelaySeconds: -1\n  serve"), "spec.rayClusterDeletionDelaySeconds: is -1; want zero or more"},
		{"suspended service", edit(t, serve, "    headGroupSpec:\n", "    suspend: true\n    headGroupSpec:\n"), "spec.rayClusterConfig.suspend: is true; remove it"},
		{"cron job", nightly, cronJob},
		{"cron job without a schedule", edit(t, nightly, "schedule: '0 3 * * *'", "schedule: ''"), cronJob},
		{"cron job with another fault first", edit(t, nightly, "name: nightly", "name: "+strings.Repeat("nightly", 9)), cronJob},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := Read([]byte(c.manifest))
			if !errors.Is(err, ErrInvalid) {
				t.Fatalf("error %v, want a refusal with %q", err, c.want)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("refused with %q, want %q in it", err, c.want)
			}
		})
	}
}

// TestFaultsOfCronJobs: a prediction of pods names the faults, too.
func TestFaultsOfCronJobs(t *testing.T) {
	t.Parallel()
	for manifest, want := range map[string]string{
		edit(t, nightly, "ray.io/v1", "ray.io/v1alpha1"):                                                         `apiVersion: is "ray.io/v1alpha1", which has no RayCronJob; want ray.io/v1`,
		edit(t, nightly, "schedule: '0 3 * * *'", "schedule: ''"):                                                "spec.schedule: is empty; want a schedule",
		edit(t, nightly, "entrypoint: python train.py", "entrypoint: python train.py\n    submissionMode: Mail"): `spec.jobTemplate.submissionMode: is "Mail"`,
	} {
		t.Run(manifest, func(t *testing.T) {
			if _, err := Shipped().Predict([]byte(manifest)); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
				t.Errorf("predicted with %v, want %q", err, want)
			}
		})
	}
}

// TestTooLargeAsJSON: some characters take more room in JSON than submitted.
func TestTooLargeAsJSON(t *testing.T) {
	t.Parallel()
	object, err := Read([]byte(glue))
	if err != nil {
		t.Fatal(err)
	}
	note := strings.Repeat("\u2028", event.MaxSubmission/4)
	_, err = Read([]byte(edit(t, string(object.Manifest), `"headGroupSpec":{`, `"headServiceAnnotations":{"note":"`+note+`"},"headGroupSpec":{`)))
	if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "bytes as JSON; at most 524288 are accepted") {
		t.Errorf("error %v, want a refusal of the size as JSON", err)
	}
}

// TestMessagesAreBounded: a hostile value does not come back whole.
func TestMessagesAreBounded(t *testing.T) {
	t.Parallel()
	_, err := Read([]byte(edit(t, glue, "name: glue", "name: "+strings.Repeat("x", 100_000))))
	if err == nil || len(err.Error()) > 500 {
		t.Errorf("message of %d bytes", len(err.Error()))
	}
}

// TestValuesAreBounded: a document has as many values as it may have, and not one
// more, however it is written.
func TestValuesAreBounded(t *testing.T) {
	t.Parallel()
	// Besides the items of the list: the document, kind and the list.
	const besides = 3
	for name, format := range map[string]string{"JSON": `{"kind":"x","a":[%s1]}`, "YAML": "kind: x\na: [%s1]\n"} {
		t.Run(name, func(t *testing.T) {
			most := fmt.Sprintf(format, strings.Repeat("1,", mostValues-besides-1))
			if _, err := Tree([]byte(most)); err != nil {
				t.Errorf("%s with %d values: %v", name, mostValues, err)
			}
			more := fmt.Sprintf(format, strings.Repeat("1,", mostValues-besides))
			tree, err := Tree([]byte(more))
			if err == nil || !strings.Contains(err.Error(), "has more than 20000 values") {
				t.Errorf("%s with a value more is a tree of %d: %v", name, len(tree), err)
			}
		})
	}
}
