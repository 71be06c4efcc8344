package scenario_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/whatif/scenario"
)

// nodes and what follows is the beginning of most cases; they add from line 4 on.
const nodes = `nodes:
- {name: "gpu-{0}", count: 2, allocatable: {cpu: 8, nvidia.com/gpu: 4}}
waiting: [{name: a, pods: [{name: workers, requests: {cpu: 1}}]}]
`

const reasons = "Fit, Quota, Topology, NeverFits, Held, WaitingForEviction, Provisioning, AdmissionCheck, CheckRetry, CheckRejected, Preempted, Shrunk, Drained, Requeued, BehindHead, Reserved, Unknown, Pending, NoNodes, Starting, NodeLost, ClusterLost, ClusterSilent, PermissionEnded, PlaceLost, " +
	"PodLost, NodeNotReady, HeadReplaced, Growing, NotReady, NotCreated, Backoff, MaxRunTime, Idle, BesidePlan, ExitCode, Cancelled, Released, Deleted, Refused, JobEnded, Invalid, Duplicate, Full, Queue, Forbidden, Restored, NotStorable"

const fields = "name, start, nodeGrace, podsGo, nodes, queues, resourceFlavors, cohorts, clusterQueues, localQueues, workloadPriorityClasses, " +
	"admissionChecks, provisioningRequestConfigs, topologies, queueHolds, clusterQueueHolds, clusters, clusterCordons, reservations, budgets, budgetHolds, fairSharing, admissionFairSharing, pastUse, running, waiting, steps"

const events = "say, submit, end, fail, cancel, checkpoint, gone, losePod, addNodes, removeNodes, cordon, uncordon, notReady, ready, pass, expect"

// running is a file with a running gang of two pod sets; the case goes into line 5.
func running(places string) string {
	return `nodes: [{name: "n{0}", count: 2, allocatable: {cpu: 8}}, {name: far, cluster: other, allocatable: {cpu: 8}}]
running:
- name: a
  pods: [{name: head, requests: {cpu: 1}}, {name: workers, count: 2, requests: {cpu: 1}}]
` + places + "\n"
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, want string }{
		"empty":                      {"# nothing\n", "the file is empty"},
		"a list":                     {"- name: a\n", "line 1: a list: want an object with " + fields},
		"tab":                        {"nodes:\n\t- name: a\n", "line 2: a tab indents the line; want spaces, YAML allows nothing else"},
		"broken":                     {"nodes: [a\nsteps: []\n", "line 1: did not find expected ',' or ']'"},
		"key twice":                  {nodes + "nodes: []\n", `line 4: mapping key "nodes" already defined at line 1`},
		"unknown field":              {nodes + "stpes: []\n", "line 4: stpes: there is no such field; want one of " + fields},
		"unknown event":              {nodes + "steps:\n- stop: a\n", "line 5: steps[0].stop: there is no such field; want one of " + events},
		"unknown expectation":        {nodes + "steps:\n- expect: {waits: a}\n", "line 5: steps[0].expect.waits: there is no such field; want one of admitted, evicted, rejected, waiting, running, ended"},
		"start":                      {"start: yesterday\n" + nodes, `line 1: start: "yesterday": want a time, such as 2026-01-31T08:00:00Z`},
		"pods go":                    {"podsGo: never\n" + nodes, `line 1: podsGo: "never": want "at once" or "when said"`},
		"node grace":                 {"nodeGrace: 1\n" + nodes, `line 1: nodeGrace: "1" is no duration; want a number and a unit, such as 90s, 10m or 2h`},
		"nodes without name":         {"nodes: [{allocatable: {cpu: 1}}]\n", "line 1: nodes[0].name: is missing; want a name, such as gpu-{00}, where zeros in braces are the number"},
		"nodes without number":       {"nodes: [{name: a, count: 2, allocatable: {cpu: 1}}]\n", `line 1: nodes[0].name: "a" for 2 nodes: want the place of the number as zeros in braces, such as gpu-{00}`},
		"too many nodes":             {"nodes: [{name: \"a{0}\", count: 20001, allocatable: {cpu: 1}}]\n", `line 1: nodes[0].count: 20001: want 0 to 20000`},
		"count as text":              {"nodes:\n- name: a{0}\n  count: two\n  allocatable: {cpu: 1}\n", `line 3: nodes[0].count: "two": want a whole number`},
		"nothing to allocate":        {"nodes: [{name: a}]\n", "line 1: nodes[0].allocatable: is missing; want what pods may use, such as {cpu: 96, memory: 512Gi, nvidia.com/gpu: 8}"},
		"amounts":                    {"nodes:\n- name: a\n  allocatable:\n    cpu: many\n    nvidia.com/gpu: [1]\n", `line 4: nodes[0].allocatable.cpu: "many" is no amount; want a number, with a suffix if need be, such as "500m", 4 or "16Gi"` + "\n" + `line 5: nodes[0].allocatable["nvidia.com/gpu"]: "[1]" is no amount; want a number, with a suffix if need be, such as "500m", 4 or "16Gi"`},
		"taint":                      {"nodes:\n- name: a\n  allocatable: {cpu: 1}\n  taints: [{key: a, effect: Never}]\n", `line 4: nodes[0].taints[0].effect: "Never": want NoSchedule, PreferNoSchedule or NoExecute`},
		"life of a queue":            {"queues:\n- name: q\n  life: {maxRunTime: 2 h}\n" + nodes, `line 3: queues[0].life.maxRunTime: "2 h" is no duration; want a number and a unit, such as 90s, 10m or 2h`},
		"queue without name":         {"queues: [{namespaces: [a]}]\n" + nodes, "line 1: queues[0].name: is missing"},
		"policy":                     {"clusterQueues:\n- name: q\n  queueingStrategy: Fifo\n" + nodes, `line 3: clusterQueues[0].queueingStrategy: "Fifo": want one of BestEffortFIFO, StrictFIFO, Backfill`},
		"pods and manifest":          {"waiting: [{name: a}]\n", "line 1: waiting[0]: want either pods or a manifest, not neither"},
		"pod set without name":       {"waiting: [{name: a, pods: [{requests: {cpu: 1}}]}]\n", "line 1: waiting[0].pods[0].name: is missing; want a name, such as workers"},
		"pod set twice":              {"waiting: [{name: a, pods: [{name: w, requests: {}}, {name: w, requests: {}}]}]\n", `line 1: waiting[0].pods[1].name: "w" is a duplicate; want another name`},
		"no pods":                    {"waiting: [{name: a, pods: [{name: w, count: 0, requests: {}}]}]\n", `line 1: waiting[0].pods[0].count: 0: want 1 to 10000`},
		"manifest":                   {"waiting:\n- manifest:\n    kind: Deployment\n    apiVersion: apps/v1\n", `line 2: waiting[0].manifest: kind: is "Deployment"; want RayCluster, RayJob or RayService`},
		"workload without name":      {"waiting: [{pods: [{name: w, requests: {}}]}]\n", "line 1: waiting[0].name: is missing; want a name by which the steps can refer to the workload"},
		"workload twice":             {nodes + "running: [{name: a, pods: [{name: w, requests: {}}]}]\n", `line 3: waiting[0].name: "a" is the name of the workload at running[0], too; want another`},
		"which queue":                {"queues: [{name: q}, {name: r}]\n" + nodes, "line 4: waiting[0].queue: is missing; want one of q, r"},
		"priority and class":         {"waiting: [{name: a, priority: 1, priorityClass: high, pods: [{name: w, requests: {}}]}]\n", "line 1: waiting[0].priorityClass: there is priority, too; want one of them"},
		"priority":                   {"waiting: [{name: a, priority: high, pods: [{name: w, requests: {}}]}]\n", `line 1: waiting[0].priority: "high": want a whole number`},
		"run time":                   {"waiting: [{name: a, runTime: long, pods: [{name: w, requests: {}}]}]\n", `line 1: waiting[0].runTime: "long" is no duration; want a number and a unit, such as 90s, 10m or 2h`},
		"places of the waiting":      {"waiting: [{name: a, age: 1m, places: {w: {n: 1}}, pods: [{name: w, requests: {}}]}]\n", "line 1: waiting[0].places: is for running workloads; a decision places this one\nline 1: waiting[0].age: is for running workloads"},
		"age without places":         {running("  age: 1h"), `line 5: running[0].age: "1h": a gang without places is admitted when the scenario begins; want its places, too`},
		"age":                        {running("  places: {head: {n0: 1}, workers: {n0: 2}}\n  age: old"), `line 6: running[0].age: "old" is no duration; want a number and a unit, such as 90s, 10m or 2h`},
		"misspelt pod set":           {running("  places: {head: {n0: 1}, wrokers: {n0: 2}}"), `line 5: running[0].places.wrokers: "wrokers": there is no pod set of this name; there are head, workers`},
		"too few places":             {running("  places:\n    head: {n0: 1}\n    workers: {n0: 1}"), `line 7: running[0].places.workers: places 1 pods; want the 2 of the pod set`},
		"no places of a pod set":     {running("  places: {head: {n0: 1}}"), `line 5: running[0].places.workers: places 0 pods; want the 2 of the pod set`},
		"unknown node":               {running("  places: {head: {n7: 1}, workers: {n0: 2}}"), `line 5: running[0].places.head.n7: there is no node "n7" at the beginning`},
		"two clusters":               {running("  places: {head: {n0: 1}, workers: {far: 2}}"), `line 5: running[0].places.workers.far: is of cluster other, and others of cluster cluster; a gang is in one`},
		"places as text":             {running("  places: {head: n0}"), `line 5: running[0].places.head: "n0": want an object`},
		"two events":                 {nodes + "steps:\n- say: hm\n- end: a\n  pass: 1m\n", "line 6: steps[1]: has 2 events (end, pass); want one, the others in steps of their own"},
		"pass":                       {nodes + "steps: [{pass: a while}]\n", `line 4: steps[0].pass: "a while" is no duration; want a number and a unit, such as 90s, 10m or 2h`},
		"event of no workload":       {nodes + "steps:\n- end: [a, b]\n", `line 5: steps[0].end[1]: "b": there is no workload of this name before or in this step; there are a`},
		"event before":               {nodes + "steps:\n- end: b\n- submit: {name: b, pods: [{name: w, requests: {}}]}\n", `line 5: steps[0].end[0]: "b": there is no workload of this name before or in this step; there are a`},
		"expectation of no workload": {nodes + "steps:\n- expect: {admitted: b}\n", `line 5: steps[0].expect.admitted[0].name: "b": there is no workload of this name before or in this step; there are a`},
		"expectation no name":        {nodes + "steps:\n- expect: {waiting: {because: Fit}}\n", `line 5: steps[0].expect.waiting[0].name: is missing; want the name of a workload`},
		"expectation empty":          {nodes + "steps:\n- expect:\n", "line 5: steps[0].expect: is empty; want what is expected, or {} for nothing"},
		"reason word":                {nodes + "steps:\n- expect:\n    waiting:\n      name: a\n      because: Fitt\n", `line 8: steps[0].expect.waiting[0].because: "Fitt": want one of ` + reasons},
		"reason of an eviction":      {nodes + "steps:\n- expect: {evicted: {name: a, because: preempted}}\n", `line 5: steps[0].expect.evicted[0].because: "preempted": want one of ` + reasons},
		"reason of an admission":     {nodes + "steps:\n- expect: {admitted: {name: a, because: Fit}}\n", "line 5: steps[0].expect.admitted[0].because: there is no such field; want one of name, cluster, nodes, pods"},
		"end":                        {nodes + "steps:\n- expect: {ended: {a: done}}\n", `line 5: steps[0].expect.ended.a: "done": want succeeded, failed, cancelled`},
		"steps as an object":         {nodes + "steps: {pass: 1m}\n", "line 4: steps: an object: want a list"},
		"all at once, nothing invented": {
			"nodes: [{name: gpu, allocatable: {cpu: lots}}]\nqueues: [{name: Q_1}]\nrunning:\n- {name: a, queue: Q_1, pods: [{name: w, requests: {cpu: x}}], places: {w: {gpu: 1}}}\n" +
				"steps:\n- end: a\n  expect: {ended: {a: succeeded}, waiting: {name: a, because: Fitt}}\n",
			`line 2: queues[0].name: "Q_1": want lower-case letters, digits and dashes, at most 63
line 1: nodes[0].allocatable.cpu: "lots" is no amount; want a number, with a suffix if need be, such as "500m", 4 or "16Gi"
line 4: running[0].pods[0].requests.cpu: "x" is no amount; want a number, with a suffix if need be, such as "500m", 4 or "16Gi"
line 7: steps[0].expect.waiting[0].because: "Fitt": want one of ` + reasons,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := scenario.Parse([]byte(c.file))
			if err == nil {
				t.Fatal("it is taken")
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

// A fault that shows only when the scenario is played is located, too.
func TestFaultsOfThePlay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, want string }{
		"node":         {nodes + "steps:\n- cordon: gpu-7\n", `line 5: steps[0].cordon[0]: "gpu-7": there is no node of this name at that time; there are gpu-0, gpu-1`},
		"node gone":    {nodes + "steps:\n- removeNodes: gpu-0\n- ready: gpu-0\n", `line 6: steps[1].ready[0]: "gpu-0": there is no node of this name at that time; there are gpu-1`},
		"node twice":   {nodes + "steps:\n- addNodes:\n  - {name: gpu-0, allocatable: {cpu: 1}}\n", `line 6: steps[0].addNodes[0].name: there is a node "gpu-0" already, in cluster cluster`},
		"does not fit": {nodes + "running:\n- {name: b, pods: [{name: w, requests: {cpu: 9}}]}\n", `line 5: running[0]: "b" should be running, but cannot be started: each pod of pod set "w" requests cpu 9, and the largest node that takes it offers 8 when empty; it waits until a node is added or changed. Now: 1 of 1 pods of pod set "w" do not fit: 0/2 nodes are available: 2 Insufficient cpu. Each pod requests cpu 9; free: 8 on the best node, 16 in sum over 2 eligible nodes, but not on one node`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, err := scenario.Parse([]byte(c.file))
			if err != nil {
				t.Fatal(err)
			}
			_, err = scenario.Run(file)
			if err == nil {
				t.Fatal("it is played")
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

// Who expects nothing has checked nothing.
func TestNothingExpectedIsNothingPassed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]scenario.Outcome{
		nodes: {}, nodes + "steps: [{pass: 1m}]\n": {},
		nodes + "steps: [{expect: {running: a, admitted: a}}]\n":            {Passed: true, Checked: 1},
		nodes + "steps: [{expect: {}}, {pass: 1m, expect: {running: a}}]\n": {Checked: 2, Differences: 1},
	} {
		t.Run(text, func(t *testing.T) {
			file, err := scenario.Parse([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			got, err := scenario.Run(file)
			if err != nil {
				t.Fatal(err)
			}
			got.Name, got.Steps = "", nil
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
