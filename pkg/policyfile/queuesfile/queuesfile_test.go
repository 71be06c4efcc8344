package queuesfile_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/policyfile/queuesfile"
)

// good is a file in which each case changes something; lines are counted from it.
const good = `queues:
- name: research
  namespaces: [research]
  life: {readyDeadline: 10m}
resourceFlavors:
- name: h100
clusterQueues:
- name: research
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors:
    - name: h100
      resources: [{name: nvidia.com/gpu, nominalQuota: 8}]
`

func TestFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, want string }{
		"empty":                  {"", "the file is empty"},
		"a text":                 {"queues", `line 1: "queues": want an object with queues, resourceFlavors, cohorts, clusterQueues, localQueues, workloadPriorityClasses, admissionChecks, provisioningRequestConfigs, topologies, queueHolds, clusterQueueHolds, clusters, clusterCordons, reservations, budgets, budgetHolds, fairSharing, admissionFairSharing`},
		"no queue":               {"cohorts: [{name: all}]", "queues: is missing, and there are no localQueues; want at least one queue, such as {name: research, namespaces: [research]}"},
		"tab":                    {"queues:\n\t- name: a\n", "line 2: a tab indents the line; want spaces, YAML allows nothing else"},
		"two documents":          {good + "---\n" + good, "line 15: another document begins; want one in a file"},
		"a budget's hold":        {"queues: [{name: q, namespaces: [a]}]\nbudgetHolds: [{name: b, queue: q, since: 2026-01-01T00:00:00Z, until: 2026-01-02T00:00:00Z}]\n", "budgetHolds: queue-manager makes and ends holds of budgets; leave them out"},
		"misspelt list":          {"queue: []\n", "line 1: queue: there is no such field; want one of queues, resourceFlavors, cohorts, clusterQueues, localQueues, workloadPriorityClasses, admissionChecks, provisioningRequestConfigs, topologies, queueHolds, clusterQueueHolds, clusters, clusterCordons, reservations, budgets, budgetHolds, fairSharing, admissionFairSharing"},
		"name":                   {"queues:\n- {name: Research_1, namespaces: [a]}\n", `line 2: queues[0].name: "Research_1": want lower-case letters, digits and dashes, at most 63`},
		"no name":                {"queues:\n- {namespaces: [a]}\n", `line 2: queues[0].name: is missing`},
		"name twice":             {"queues:\n- {name: a, namespaces: [a]}\n- {name: a, namespaces: [b]}\n", `line 3: queues[1].name: "a" is the name of queues[0], too; want another`},
		"no namespace":           {"queues:\n- {name: a}\n", `line 2: queues[0].namespaces: is missing; want at least one`},
		"empty namespace":        {"queues:\n- name: a\n  namespaces:\n  - a\n  - ''\n", `line 5: queues[0].namespaces[1]: is missing`},
		"namespace":              {"queues:\n- {name: a, namespaces: [Team A]}\n", `line 2: queues[0].namespaces[0]: "Team A": want lower-case letters, digits and dashes, at most 63`},
		"namespace as text":      {"queues:\n- {name: a, namespaces: a}\n", `line 2: queues[0].namespaces: "a": want a list`},
		"strategy":               {"queues:\n- {name: a, namespaces: [a], strategy: Fifo}\n", `line 2: queues[0].strategy: "Fifo": want BestEffortFIFO, StrictFIFO or Backfill`},
		"duration":               {"queues:\n- name: a\n  namespaces: [a]\n  life:\n    readyDeadline: 5 min\n", `line 5: queues[0].life.readyDeadline: "5 min" is no duration; want a number and a unit, such as 90s, 10m or 2h`},
		"duration as number":     {"queues:\n- name: a\n  namespaces: [a]\n  life: {runTime: 600}\n", `line 4: queues[0].life.runTime: 600 is no duration; want a text such as "10m"`},
		"negative duration":      {"queues:\n- name: a\n  namespaces: [a]\n  life: {keepFinished: -5m}\n", `line 4: queues[0].life.keepFinished: "-5m" is not between 0s and 87600h0m0s`},
		"on pod loss":            {"queues:\n- name: a\n  namespaces: [a]\n  life: {onPodLoss: panic}\n", `line 4: queues[0].life.onPodLoss: "panic": want heal or evict`},
		"start":                  {"queues:\n- name: a\n  namespaces: [a]\n  life: {start: late}\n", `line 4: queues[0].life.start: "late": want early or whole`},
		"requeues":               {"queues:\n- name: a\n  namespaces: [a]\n  life: {requeues: many}\n", `line 4: queues[0].life.requeues: "many": want a whole number`},
		"back-off":               {"queues:\n- name: a\n  namespaces: [a]\n  life: {backoffFirst: 5m, backoffMost: 1m}\n", `line 4: queues[0].life.backoffMost: 1m0s is less than backoffFirst, which is 5m0s; want at least that`},
		"unknown rule":           {"queues:\n- name: a\n  namespaces: [a]\n  life: {retries: 5}\n", `line 4: queues[0].life.retries: there is no such field; want one of readyDeadline, onPodLoss, start, moves, checkpointInterval, checkpointGrace, maxRunTime, idleTime, runTime, tolerance, requeues, backoffFirst, backoffMost, forceAfter, keepFinished, placement, limits, podPolicy, objectPolicy, submitters, identities, strayPods, onLostCluster, homeObjects, preferClusters, carries`},
		"pod policy in life":     {"queues:\n- name: a\n  namespaces: [a]\n  life: {podPolicy: {privileged: true}}\n", `line 4: queues[0].life.podPolicy: is no field of life; set it beside life, as queues[0].podPolicy`},
		"limits in life":         {"queues:\n- name: a\n  namespaces: [a]\n  life: {limits: {pods: 4}}\n", `line 4: queues[0].life.limits: is no field of life; set it beside life, as queues[0].limits`},
		"limits":                 {"queues:\n- name: a\n  namespaces: [a]\n  life: {maxRunTime: 2h}\n  limits:\n    maxRunTime: 1h\n    retries: 1\n    pods: -1\n    resources: {nvidia.com/gpu: many}\n    priorityClasses: ['']\n", `line 6: queues[0].limits.maxRunTime: 1h0m0s is less than the queue's own maxRunTime, which is 2h0m0s; raise the limit or lower that` + "\n" + `line 7: queues[0].limits.retries: 1 is less than the queue's own requeues, which are 5; raise the limit or lower them` + "\n" + `line 8: queues[0].limits.pods: -1: want 1 or more, or leave it out for no limit` + "\n" + `line 10: queues[0].limits.priorityClasses[0]: is empty; want the name of a workloadPriorityClass` + "\n" + `line 9: queues[0].limits.resources.nvidia.com/gpu: "many" is no amount of nvidia.com/gpu: want a number that is not negative, with a suffix if need be, such as "500m", "4" or "16Gi"`},
		"unknown limit":          {"queues:\n- name: a\n  namespaces: [a]\n  limits: {gpus: 4}\n", `line 4: queues[0].limits.gpus: there is no such field; want one of checkpointGrace, readyDeadline, forceAfter, maxRunTime, idleTime, checkpointInterval, endAtRunTime, retries, pause, successTTL, priority, priorityClasses, pods, resources, workloads`},
		"submitters in life":     {"queues:\n- name: a\n  namespaces: [a]\n  life: {submitters: [{who: [http/alice]}]}\n", `line 4: queues[0].life.submitters: is no field of life; set it beside life, as queues[0].submitters`},
		"object policy in life":  {"queues:\n- name: a\n  namespaces: [a]\n  life: {objectPolicy: {externalIPs: true}}\n", `line 4: queues[0].life.objectPolicy: is no field of life; set it beside life, as queues[0].objectPolicy`},
		"identities in life":     {"queues:\n- name: a\n  namespaces: [a]\n  life: {identities: [{who: [http/alice], user: alice}]}\n", `line 4: queues[0].life.identities: is no field of life; set it beside life, as queues[0].identities`},
		"preference in life":     {"queues:\n- name: a\n  namespaces: [a]\n  life: {preferClusters: data=images}\n", `line 4: queues[0].life.preferClusters: is no field of life; set it beside life, as queues[0].preferClusters`},
		"preference":             {"queues:\n- {name: a, namespaces: [a], preferClusters: 'data in (images)'}\n", `line 2: queues[0].preferClusters: "data in (images)": want KEY=VALUE, KEY!=VALUE, KEY or !KEY, separated by commas, such as gpu=h100,!shared`},
		"home objects in life":   {"queues:\n- name: a\n  namespaces: [a]\n  life: {homeObjects: move}\n", `line 4: queues[0].life.homeObjects: is no field of life; set it beside life, as queues[0].homeObjects`},
		"home objects":           {"queues:\n- {name: a, namespaces: [a], homeObjects: stay}\n", `line 2: queues[0].homeObjects: "stay": want wait or move`},
		"moves in life":          {"queues:\n- name: a\n  namespaces: [a]\n  life: {moves: true}\n", `line 4: queues[0].life.moves: is for an object to ask for; want homeObjects: move beside life`},
		"carries in life":        {"queues:\n- name: a\n  namespaces: [a]\n  life: {carries: [{kind: Secret, name: s, from: c}]}\n", `line 4: queues[0].life.carries: is no field of life; set it beside life, as queues[0].carries`},
		"carries":                {"queues:\n- name: a\n  namespaces: [a]\n  carries: [{kind: Pod, name: A/b, from: ''}]\n", `line 4: queues[0].carries[0].kind: "Pod": want ConfigMap or Secret` + "\n" + `line 4: queues[0].carries[0].name: "A/b": want the name of an object in Kubernetes` + "\n" + `line 4: queues[0].carries[0].from: "": want the name of a cluster`},
		"carries twice":          {"queues:\n- name: a\n  namespaces: [a]\n  carries:\n  - {kind: Secret, name: s, from: c}\n  - {kind: Secret, name: s, from: d}\n", `line 6: queues[0].carries[1]: Secret "s" is a duplicate`},
		"object policy":          {"queues:\n- name: a\n  namespaces: [a]\n  objectPolicy:\n    kinds: [job.batch]\n    serviceTypes: [Any]\n", `line 5: queues[0].objectPolicy.kinds[0]: "job.batch": want Kind.group, such as Job.batch or ConfigMap, or default, or "*"` + "\n" + `line 6: queues[0].objectPolicy.serviceTypes[0]: "Any": want NodePort, LoadBalancer or ExternalName`},
		"identities":             {"queues:\n- name: a\n  namespaces: [a]\n  identities:\n  - who: [kubernetes/c/alice]\n  - who: [http/*]\n    user: system:serviceaccount:a\n    groups: [system:masters]\n", `line 5: queues[0].identities[0].user: is missing; want a user of Kubernetes, such as system:serviceaccount:team-a:submitter` + "\n" + `line 7: queues[0].identities[1].user: "system:serviceaccount:a": want system:serviceaccount:NAMESPACE:NAME` + "\n" + `line 8: queues[0].identities[1].groups[0]: "system:masters": want a group whose rights are asked; system:masters may do everything`},
		"submitters":             {"queues:\n- name: a\n  namespaces: [a]\n  submitters:\n  - who: [http/alice, alice]\n  - {namespaces: [a]}\n", `line 5: queues[0].submitters[0].who[1]: "alice": want a name such as http/alice, nats/team-a or kubernetes/CLUSTER/USER, in which * stands for any characters` + "\n" + `line 6: queues[0].submitters[1].who: is empty; want names such as http/alice, nats/team-a or kubernetes/CLUSTER/USER`},
		"tolerance in life":      {"queues:\n- name: a\n  namespaces: [a]\n  life: {tolerance: {}}\n", `line 4: queues[0].life.tolerance: is for a workload to ask for; want requeues, backoffFirst, backoffMost and forceAfter`},
		"pod policy":             {"queues:\n- name: a\n  namespaces: [a]\n  podPolicy:\n    mode: open\n    hostPaths: [a]\n", `line 5: queues[0].podPolicy.mode: "open": want baseline, restricted or off` + "\n" + `line 6: queues[0].podPolicy.hostPaths[0]: "a": want an absolute path without ".."`},
		"strategy of quota":      {"queues:\n- {name: a, namespaces: [a], strategy: Backfill}\nclusterQueues:\n- name: a\n", `line 2: queues[0].strategy: "Backfill", but clusterQueues[0] of the same name has quota and the queueingStrategy BestEffortFIFO, which counts; set it there and leave it out here`},
		"quota":                  {"queues: [{name: a, namespaces: [a]}]\nresourceFlavors: [{name: f}]\nclusterQueues:\n- name: a\n  resourceGroups:\n  - coveredResources: [cpu]\n    flavors:\n    - name: f\n      resources:\n      - name: cpu\n        nominalQuota: ten\n        borowingLimit: 1\n", `line 12: clusterQueues[0].resourceGroups[0].flavors[0].resources[0].borowingLimit: there is no such field; want one of name, nominalQuota, borrowingLimit, lendingLimit`},
		"quota is a list":        {"queues: [{name: a, namespaces: [a]}]\nclusterQueues:\n- name: a\n  resourceGroups:\n  - flavors:\n    - name: f\n      resources: {name: cpu}\n", `line 7: clusterQueues[0].resourceGroups[0].flavors[0].resources: an object: want a list`},
		"amount":                 {"queues: [{name: a, namespaces: [a]}]\nclusterQueues:\n- name: a\n  resourceGroups:\n  - flavors:\n    - name: f\n      resources:\n      - {name: cpu, nominalQuota: ten, lendingLimit: -1}\n", `line 8: clusterQueues[0].resourceGroups[0].flavors[0].resources[0].nominalQuota: "ten" is no amount of cpu: want a number that is not negative, with a suffix if need be, such as "500m", "4" or "16Gi"` + "\n" + `line 8: clusterQueues[0].resourceGroups[0].flavors[0].resources[0].lendingLimit: "-1" is no amount of cpu: want a number that is not negative, with a suffix if need be, such as "500m", "4" or "16Gi"`},
		"misspelt flavor":        {good + "    - name: h10\n      resources: [{name: nvidia.com/gpu, nominalQuota: 8}]\n", `line 14: clusterQueues[0].resourceGroups[0].flavors[1].name: "h10": there is no resourceFlavor of this name; there are h100`},
		"local queue":            {good + "localQueues:\n- {name: l, namespace: n, clusterQueue: reserch}\n- {name: L, namespace: n, clusterQueue: research}\n", `line 16: localQueues[1].name: "L": want lower-case letters, digits and dashes, at most 63` + "\n" + `line 15: localQueues[0].clusterQueue: "reserch": there is no clusterQueue of this name; there are research`},
		"weight":                 {good + "  fairSharing: {weight: heavy}\n", `line 14: clusterQueues[0].fairSharing.weight: "heavy": want a number that is not negative, such as 2 or 0.5`},
		"priority":               {good + "workloadPriorityClasses:\n- {name: high, value: 1e99}\n", `line 15: workloadPriorityClasses[0].value: 1e99: want a whole number`},
		"fair sharing as a list": {good + "fairSharing: [enable]\n", `line 14: fairSharing: a list: want an object with enable, preemptionStrategies, usageHalfLifeSeconds`},
		"several at once":        {"queues:\n- {name: a, strategy: Fifo}\n- {name: B, namespaces: [b]}\nclusterQueues:\n- {name: a, stopPolicy: Stop}\n", "line 2: queues[0].strategy: \"Fifo\", but clusterQueues[0] of the same name has quota and the queueingStrategy BestEffortFIFO, which counts; set it there and leave it out here\nline 2: queues[0].namespaces: is missing; want at least one\nline 2: queues[0].strategy: \"Fifo\": want BestEffortFIFO, StrictFIFO or Backfill\nline 3: queues[1].name: \"B\": want lower-case letters, digits and dashes, at most 63\nline 5: clusterQueues[0].stopPolicy: \"Stop\": want one of None, Hold, HoldAndDrain"},
		"a word that is none":    {"queues:\n- {name: a, namespaces: [a], life: {onPodLoss: no}}\n", `line 2: queues[0].life.onPodLoss: "no": want heal or evict`},
		"kueue":                  {"apiVersion: kueue.x-k8s.io/v1beta1\nkind: LocalQueue\nmetadata: {name: l}\nspec:\n  clusterQueue: other\n", `line 5: LocalQueue "l": spec.clusterQueue: "other": there is no clusterQueue of this name, nor any other`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := queuesfile.Read([]byte(c.file))
			if err == nil {
				t.Fatal("it is taken")
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNotes(t *testing.T) {
	t.Parallel()
	file, notes, err := queuesfile.Read([]byte(good + "- name: reserch\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`no queue and no LocalQueue leads to ClusterQueue "reserch": nothing can be submitted to it`}
	if diff := cmp.Diff(want, notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if len(file.Queues) != 1 || file.Queues[0].Strategy != "BestEffortFIFO" {
		t.Errorf("queues are %+v", file.Queues)
	}
}

// A LocalQueue lets its namespace in, whether a queue of its name is listed or not.
func TestLocalQueuesMakeQueues(t *testing.T) {
	t.Parallel()
	file, _, err := queuesfile.Read([]byte(good + `  queueingStrategy: StrictFIFO
localQueues:
- {name: research, namespace: guests, clusterQueue: research}
- {name: night, namespace: a, clusterQueue: research}
- {name: night, namespace: b, clusterQueue: research}
`))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, q := range file.Queues {
		got[q.Name+" "+q.Strategy] = q.Namespaces
	}
	want := map[string][]string{"research StrictFIFO": {"research", "guests"}, "night StrictFIFO": {"a", "b"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("queues (-want +got):\n%s", diff)
	}
}
