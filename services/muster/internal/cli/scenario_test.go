package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/services/internal/client/exit"
)

const (
	twoOnOne = `name: The second waits for the first
nodes: [{name: gpu-0, allocatable: {cpu: 8, nvidia.com/gpu: 1}}]
waiting:
- {name: a, pods: [{name: workers, requests: {nvidia.com/gpu: 1}}]}
- {name: b, pods: [{name: workers, requests: {nvidia.com/gpu: 1}}]}
steps:
`
	right = twoOnOne + "- expect: {admitted: a, waiting: {name: b, because: Fit}}\n- end: a\n  expect: {admitted: {name: b, nodes: gpu-0}}\n"
	wrong = twoOnOne + "- expect: {admitted: b}\n"
	none  = twoOnOne + "- end: a\n"
	// refused asks for more than a queue allows, and does not say that it expects that.
	refused = twoOnOne + "- submit: {name: urgent, priority: 9001, pods: [{name: workers, requests: {nvidia.com/gpu: 1}}]}\n- expect: {waiting: b}\n"
)

func TestScenario(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"right.yaml": right, "wrong.yaml": wrong, "none.yaml": none, "refused.yaml": refused, "fault.yaml": twoOnOne + "- expect: {waiting: {name: c, because: Fitt}}\n",
		"other-fault.yaml": "nodes:\n- name: a\n  count: two\n",
		"queues.yaml":      "queues: [{name: team, namespaces: [team]}]\nclusterQueues: [{name: lonely}]\n",
		"bad-queues.yaml":  "queues: [{name: team}]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for args, want := range map[string]result{
		"right.yaml": {exit.OK, "ok    right.yaml  The second waits for the first\n", ""},
		"right.yaml wrong.yaml": {
			exit.Failure,
			`ok    right.yaml  The second waits for the first
FAIL  wrong.yaml  The second waits for the first
      step 1, the beginning
        admitted: want b; it is queued (Fit: 1 of 1 pods of pod set "workers" do not fit: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu. Each pod requests nvidia.com/gpu 1; free: 0 on the best node, 0 in sum over 1 eligible nodes)
        admitted: got a on gpu-0, want it not admitted
`,
			"muster: 1 of 2 scenarios differ from what they expect\n",
		},
		"refused.yaml": {
			exit.OK,
			`ok    refused.yaml  The second waits for the first
      step 1, submit urgent
        rejected, which no step expects: urgent (Forbidden: priority: is 9001, but queue "default" allows 1000 at most; ask for that or less (limits are set in queue-manager's queues file))
`,
			"",
		},
		"none.yaml": {
			exit.Failure, "none  none.yaml  The second waits for the first\n",
			"muster: 1 of 1 scenarios have no step with expect, so nothing was checked\n",
		},
		"fault.yaml right.yaml other-fault.yaml nothing.yaml": {
			exit.Usage, "ok    right.yaml  The second waits for the first\n",
			`muster: fault.yaml:7: steps[0].expect.waiting[0].name: "c": there is no workload of this name before or in this step; there are a, b
fault.yaml:7: steps[0].expect.waiting[0].because: "Fitt": want one of ` + kinds + `
other-fault.yaml:3: nodes[0].count: "two": want a whole number
nothing.yaml: open nothing.yaml: no such file or directory
`,
		},
		"--queues queues.yaml right.yaml": {
			exit.OK, "ok    right.yaml  The second waits for the first\n",
			`muster: queues.yaml: no queue and no LocalQueue leads to ClusterQueue "lonely": nothing can be submitted to it` + "\n",
		},
		"--queues bad-queues.yaml right.yaml": {exit.Usage, "", "muster: bad-queues.yaml:1: queues[0].namespaces: is missing; want at least one\n"},
		"--explain wrong.yaml": {
			exit.Failure,
			`FAIL  wrong.yaml  The second waits for the first
      step 1, the beginning
        admitted: want b; it is queued (Fit: 1 of 1 pods of pod set "workers" do not fit: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu. Each pod requests nvidia.com/gpu 1; free: 0 on the best node, 0 in sum over 1 eligible nodes)
        admitted: got a on gpu-0, want it not admitted

Workload:  b
Id:        b
Phase:     queued
Queue:     default
Position:  1 of 1
Reason:    Fit: 1 of 1 pods of pod set "workers" do not fit: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu. Each pod requests nvidia.com/gpu 1; free: 0 on the best node, 0 in sum over 1 eligible nodes

It would be admitted now with any one of these:
  - 1 more empty node like gpu-0 (cpu 8, nvidia.com/gpu 1, pods 110) in cluster cluster
  - after the end of workload default/a
`,
			"muster: 1 of 1 scenarios differ from what they expect\n",
		},
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			var words []string
			for _, word := range strings.Fields(args) {
				if strings.HasSuffix(word, ".yaml") {
					word = filepath.Join(dir, word)
				}
				words = append(words, word)
			}
			got := run(t, "", append([]string{"scenario"}, words...)...)
			got.out, got.errOut = strings.ReplaceAll(got.out, dir+"/", ""), strings.ReplaceAll(got.errOut, dir+"/", "")
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

const (
	kinds = "Fit, Quota, Topology, NeverFits, Held, WaitingForEviction, Provisioning, AdmissionCheck, CheckRetry, CheckRejected, Preempted, Shrunk, Drained, Requeued, BehindHead, Reserved, Unknown, Pending, NoNodes, Starting, NodeLost, ClusterLost, ClusterSilent, PermissionEnded, PlaceLost, " +
		"PodLost, NodeNotReady, HeadReplaced, Growing, NotReady, NotCreated, Backoff, MaxRunTime, Idle, BesidePlan, ExitCode, Cancelled, Released, Deleted, Refused, JobEnded, Invalid, Duplicate, Full, Queue, Forbidden, Restored, NotStorable"
)

// -o json has all of it: admissions with their places, who waits and why, step by
// step.
func TestScenarioAsJSON(t *testing.T) {
	t.Parallel()
	got := run(t, right, "scenario", "-o", "json", "-")
	if got.code != exit.OK || got.errOut != "" {
		t.Fatalf("%+v", got)
	}
	var outcome map[string]any
	if err := json.Unmarshal([]byte(got.out), &outcome); err != nil {
		t.Fatal(err)
	}
	place := func(name string) any {
		return []any{map[string]any{"name": name, "cluster": "cluster", "placements": []any{map[string]any{"podSet": "workers", "node": "gpu-0", "pods": 1.0}}}}
	}
	steps, _ := outcome["steps"].([]any)
	if len(steps) != 2 {
		t.Fatalf("steps are %v", outcome["steps"])
	}
	first, _ := steps[0].(map[string]any)
	second, _ := steps[1].(map[string]any)
	if diff := cmp.Diff(place("a"), first["admitted"]); diff != "" {
		t.Errorf("the first step admits (-want +got):\n%s", diff)
	}
	waiting, _ := first["waiting"].([]any)
	if len(waiting) != 1 {
		t.Fatalf("after the first step wait %v", first["waiting"])
	}
	reason, _ := waiting[0].(map[string]any)["reason"].(map[string]any)
	if reason["kind"] != "Fit" || reason["shortage"] == nil {
		t.Errorf("the reason is %v", reason)
	}
	if diff := cmp.Diff(place("b"), second["admitted"]); diff != "" {
		t.Errorf("the second step admits (-want +got):\n%s", diff)
	}
	delete(outcome, "steps")
	want := map[string]any{"file": "-", "name": "The second waits for the first", "passed": true, "checked": 2.0, "differences": 0.0}
	if diff := cmp.Diff(want, outcome); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
}

// The faults that docs/scenarios.md shows are those that are printed.
func TestTheFaultsOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "scenarios.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, want, found := strings.Cut(string(page), "$ muster scenario misspelt.yaml\n")
	want, _, closed := strings.Cut(want, "```")
	if !found || !closed {
		t.Fatal("the page shows no faults")
	}
	path := fileOf(t, "misspelt.yaml", "nodes: [{name: \"gpu-{0}\",\n  count: two, allocatable: {cpu: 8}}]\nwaiting:\n- name: a\n  pods: [{name: workers, request: {cpu: 1}}]\n")
	got := run(t, "", "scenario", path)
	if text := strings.ReplaceAll(got.errOut, filepath.Dir(path)+"/", ""); text != want {
		t.Errorf("told\n%s\nthe page has\n%s", text, want)
	}
}
