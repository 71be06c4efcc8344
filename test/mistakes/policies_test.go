package mistakes

import "strings"

// flavorAndQueue are good manifests of Kueue with pairs of old and new text replaced.
func flavorAndQueue(changes ...string) string {
	return strings.NewReplacer(changes...).Replace(`apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: h100}
spec:
  nodeLabels: {gpu: h100}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: research}
spec:
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors:
    - name: h100
      resources:
      - {name: nvidia.com/gpu, nominalQuota: 8}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: user-queue, namespace: default}
spec: {clusterQueue: research}
`)
}

// policies are wrong manifests of Kueue.
func policies() group {
	g := group{title: "Kueue's manifests", intro: "The exit code, and what `muster apply -f FILE` prints."}
	add := func(name, manifests string) {
		g.mistakes = append(g.mistakes, mistake{name: name, give: func(w *world) string {
			return w.run(map[string]string{"queues.yaml": manifests}, "apply", "-f", "queues.yaml")
		}})
	}
	for _, c := range []change{
		{"A version of Kueue's API that does not exist", "kueue.x-k8s.io/v1beta2\nkind: ClusterQueue", "kueue.x-k8s.io/v2\nkind: ClusterQueue"},
		{"A kind of Kueue that is misspelt", "kind: ClusterQueue", "kind: ClusterQueues"},
		{"A field that does not exist", "  resourceGroups:", "  resourceGroup:"},
		{"A field of a deeper level that is misspelt", "nominalQuota", "nominal"},
		{"A quota that is not a quantity", "nominalQuota: 8", "nominalQuota: eight"},
		{"A quota that is negative", "nominalQuota: 8", "nominalQuota: -8"},
		{"A flavor that does not exist", "    - name: h100", "    - name: a100"},
		{"A resource that is not covered", "coveredResources: [nvidia.com/gpu]", "coveredResources: [cpu]"},
		{"A strategy that does not exist", "  resourceGroups:", "  queueingStrategy: Fair\n  resourceGroups:"},
		{"A policy of preemption that does not exist", "  resourceGroups:", "  preemption: {withinClusterQueue: Always}\n  resourceGroups:"},
		{"A limit of borrowing without a cohort", "nominalQuota: 8", "nominalQuota: 8, borrowingLimit: 4"},
		{"A LocalQueue whose ClusterQueue does not exist", "clusterQueue: research}", "clusterQueue: reserch}"},
		{"A ClusterQueue with an invalid name", "metadata: {name: research}", "metadata: {name: Research Team}"},
		{"A cohort whose name is hostile", "  resourceGroups:", "  cohortName: \"../a\"\n  resourceGroups:"},
	} {
		add(c.name, flavorAndQueue(c.old, c.replacement))
	}
	add("A manifest that is not Kueue's", cluster())
	add("A policy that is not YAML", "kind: [ClusterQueue\n")
	add("No manifest in a file", "# nothing yet\n")
	return g
}

// queuesFiles are wrong queues files.
func queuesFiles() group {
	g := group{title: "Queues files", intro: "The exit code, and what `muster scenario --queues FILE` prints; queue-manager ends at its start with the same faults."}
	for _, c := range []struct{ name, file string }{
		{"A field that does not exist, in a queues file", "queues:\n- {name: research, namespace: research}\n"},
		{"A queue without namespaces", "queues:\n- {name: research}\n"},
		{"A queue with an invalid name, in a queues file", "queues:\n- {name: Research, namespaces: [research]}\n"},
		{"Two queues of one name", "queues:\n- {name: research, namespaces: [a]}\n- {name: research, namespaces: [b]}\n"},
		{"A namespace with an invalid name, in a queues file", "queues:\n- {name: research, namespaces: [\"a b\"]}\n"},
		{"A strategy that does not exist, in a queues file", "queues:\n- {name: research, namespaces: [research], strategy: FIFO}\n"},
		{"A duration without a unit", "queues:\n- {name: research, namespaces: [research], life: {readyDeadline: 10}}\n"},
		{"A duration that is negative", "queues:\n- {name: research, namespaces: [research], life: {readyDeadline: -10m}}\n"},
		{"A start that does not exist, in a queues file", "queues:\n- {name: research, namespaces: [research], life: {start: late}}\n"},
		{"Limits at the wrong place", "queues:\n- {name: research, namespaces: [research], life: {limits: {pods: 4}}}\n"},
		{"A submitter with an invalid name", "queues:\n- {name: research, namespaces: [research], submitters: [{who: [alice]}]}\n"},
		{"An identity without a user", "queues:\n- {name: research, namespaces: [research], identities: [{who: [nats/team-a]}]}\n"},
		{"A kind without its group", "queues:\n- {name: research, namespaces: [research], objectPolicy: {kinds: [jobs]}}\n"},
		{"A way to treat stray pods that does not exist", "queues:\n- {name: research, namespaces: [research], strayPods: delete}\n"},
		{"A list that is an object", "queues: {name: research, namespaces: [research]}\n"},
		{"No queue", "queues: []\n"},
		{"An empty queues file", ""},
		{"A cohort that is its own parent", "queues: [{name: research, namespaces: [research]}]\ncohorts: [{name: a, parentName: b}, {name: b, parentName: a}]\n"},
		{"An indentation that is wrong", "queues:\n- name: research\n   namespaces: [research]\n"},
	} {
		g.mistakes = append(g.mistakes, mistake{name: c.name, give: func(w *world) string {
			return w.run(map[string]string{"queues.yaml": c.file, "scenario.yaml": scenario("")}, "scenario", "--queues", "queues.yaml", "scenario.yaml")
		}})
	}
	return g
}

// scenario is a good scenario file with the steps.
func scenario(steps string, changes ...string) string {
	return strings.NewReplacer(changes...).Replace(`name: One GPU is given
nodes: [{name: gpu-0, allocatable: {cpu: 8, nvidia.com/gpu: 1}}]
waiting:
- {name: a, pods: [{name: workers, requests: {nvidia.com/gpu: 1}}]}
steps:
` + steps + "- expect: {admitted: a}\n")
}

// scenarios are wrong scenario files.
func scenarios() group {
	g := group{title: "Scenario files", intro: "The exit code, and what `muster scenario FILE` prints."}
	for _, c := range []struct{ name, file string }{
		{"A field that does not exist, in a scenario", scenario("", "pods:", "pod:")},
		{"A count of nodes that is a word", scenario("", "name: gpu-0", "name: gpu-0, count: two")},
		{"A quantity that does not parse, in a scenario", scenario("", "cpu: 8", "cpu: eight")},
		{"An event that does not exist", scenario("- finish: a\n")},
		{"Two events in a step", scenario("- {end: a, cancel: a}\n")},
		{"An event of a workload that does not exist", scenario("- end: b\n")},
		{"A reason that does not exist", scenario("- expect: {waiting: {name: a, because: Capacity}}\n")},
		{"A node that does not exist", scenario("- removeNodes: gpu-9\n")},
		{"Two workloads of one name", scenario("- submit: {name: a, pods: [{name: workers}]}\n")},
		{"A duration that is only words", scenario("- pass: a while\n")},
		{"A scenario that is empty", ""},
		{"A scenario without steps", "name: nothing\nnodes: [{name: a, allocatable: {cpu: 1}}]\n"},
	} {
		g.mistakes = append(g.mistakes, mistake{name: c.name, give: func(w *world) string {
			return w.run(map[string]string{"scenario.yaml": c.file}, "scenario", "scenario.yaml")
		}})
	}
	return g
}

// traces are wrong logs of jobs.
func traces() group {
	g := group{title: "Logs of jobs", intro: "The exit code, and what `muster simulate --trace FILE` prints."}
	const line = "1 0 0 60 4 -1 -1 4 60 -1 1 1 1 1 1 1 -1 -1\n"
	for _, c := range []struct {
		name, file string
		flags      []string
	}{
		{"A log without jobs", "; MaxNodes: 4\n", nil},
		{"A line with too few fields", "; MaxNodes: 4\n1 0 0 60 4\n", nil},
		{"A field that is not a number", "; MaxNodes: 4\n" + strings.Replace(line, " 60 4", " sixty 4", 1), nil},
		{"A log without a number of nodes", line, nil},
		{"A number of nodes that is zero", line, []string{"--nodes", "0"}},
		{"A policy of simulation that does not exist", line, []string{"--nodes", "4", "--policy", "lifo"}},
	} {
		g.mistakes = append(g.mistakes, mistake{name: c.name, typed: strings.Join(c.flags, " "), give: func(w *world) string {
			return w.run(map[string]string{"log.swf": c.file}, append([]string{"simulate", "--trace", "log.swf"}, c.flags...)...)
		}})
	}
	return g
}
