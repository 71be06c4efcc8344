package app_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/app"
)

// withPolicy is a world whose queues are read from a file.
func withPolicy(t *testing.T, file string) *world {
	t.Helper()
	path := filepath.Join(t.TempDir(), "queues.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	queues, _, err := app.ReadQueues(path)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, queues.Queues...)
	w.stop()
	w.config.Policy = queues.Config
	w.start()
	return w
}

const twoTeams = `
resourceFlavors:
- name: any
queues:
- {name: team-a, namespaces: [team-a]}
- {name: team-b, namespaces: [team-b]}
clusterQueues:
- name: team-a
  cohortName: all
  quotaCheckStrategy: IgnoreUndeclared
  preemption: {reclaimWithinCohort: Any}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: any, resources: [{name: nvidia.com/gpu, nominalQuota: 2}]}]
- name: team-b
  cohortName: all
  quotaCheckStrategy: IgnoreUndeclared
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: any, resources: [{name: nvidia.com/gpu, nominalQuota: 2}]}]
`

func (w *world) queue(name string) query.Queue {
	w.t.Helper()
	answer, err := w.queries.Queues(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	i := slices.IndexFunc(answer.Queues, func(q query.Queue) bool { return q.Name == name })
	if i < 0 {
		w.t.Fatalf("there is no queue %s: %+v", name, answer.Queues)
	}
	return answer.Queues[i]
}

func used(q query.Queue) (used, borrowed int64) {
	for _, l := range q.Quota {
		if l.Resource == "nvidia.com/gpu" {
			return l.Used, l.Borrowed
		}
	}
	return 0, 0
}

// A team borrows, the other takes its quota back, the leader changes while the
// victim is being torn down, and no other gang gets what is freed.
func TestWhatWasLentIsTakenBackAndHeldAcrossTerms(t *testing.T) {
	t.Parallel()
	w := withPolicy(t, twoTeams)
	w.node("one", 4)
	borrower := w.submit(gangOf("borrower", "team-b", 4))
	w.command(borrower, event.Present, 1)
	w.status(event.GangStatus{Workload: borrower, Attempt: 1, Created: true})
	w.phase(borrower, workload.Dispatched)
	if got, lent := used(w.queue("team-b")); got != 4 || lent != 2 {
		t.Errorf("team-b uses %d GPUs, %d of them borrowed; want 4 and 2", got, lent)
	}
	answer, err := w.queries.Queues(w.ctx)
	if err != nil || len(answer.Cohorts) != 1 || answer.Cohorts[0].Quota[0].Nominal != 4 || answer.Cohorts[0].Quota[0].Used != 4 {
		t.Errorf("the cohorts are %+v, %v; want one of which 4 of 4 GPUs are in use", answer.Cohorts, err)
	}
	if len(answer.Flavors) != 1 || answer.Flavors[0].Name != "any" {
		t.Errorf("the flavors are %+v", answer.Flavors)
	}
	if record := w.one(borrower); len(record.Flavors) == 0 || record.Flavors[0].Flavors["nvidia.com/gpu"] != "any" {
		t.Errorf("the flavors of the borrower are %+v", record.Flavors)
	}
	later := w.submit(gangOf("later", "team-b", 1))
	w.waits(later, workload.ReasonQuota)
	explained, err := w.queries.Explain(w.ctx, query.ExplainRequest{ID: later})
	if err != nil || explained.Reason.Kind != workload.ReasonQuota || explained.Position != 1 ||
		!slices.ContainsFunc(explained.Changes, func(c workload.Change) bool {
			return c.Kind == workload.ChangeAfterEnd && slices.Contains(c.Workloads, borrower)
		}) {
		t.Errorf("explained as %+v, %v", explained, err)
	}

	owner := w.submit(gangOf("owner", "team-a", 2))
	cause := w.waits(owner, workload.ReasonWaitingForEviction).Reason.Preemption
	if len(cause.Victims) > 0 {
		t.Errorf("an event names victims of another queue: %+v", cause)
	}
	if cause := w.one(owner).Reason.Preemption; !slices.Contains(cause.Victims, borrower) {
		t.Errorf("an operator reads the victims %+v", cause)
	}
	evicted := w.phase(borrower, workload.Evicting)
	if evicted.Reason.Kind != workload.ReasonPreempted || evicted.Reason.Preemption.Preemptor != "" || !strings.Contains(evicted.Reason.Message, "reclaimWithinCohort") {
		t.Errorf("the reason of the victim is %+v", evicted.Reason)
	}
	if reason := w.one(borrower).Reason; reason.Kind != workload.ReasonPreempted || reason.Preemption.Preemptor != owner {
		t.Errorf("an operator reads of the victim %+v", reason)
	}
	w.command(borrower, event.Absent, 1)

	w.stop()
	w.start()
	first := w.submit(gangOf("thief", "team-b", 2))
	w.waits(first, workload.ReasonQuota)
	w.status(event.GangStatus{Workload: borrower, Attempt: 1, Created: true, Gone: true, Released: true})
	w.command(owner, event.Present, 1)
	if got, _ := used(w.queue("team-a")); got != 2 {
		t.Errorf("team-a uses %d GPUs, want 2", got)
	}
	// One GPU is left of what team-b has: the borrower, who keeps its place, asks
	// for more than that.
	w.command(later, event.Present, 1)
	if got := w.one(borrower); got.Phase != workload.Queued || got.Attempt != 2 {
		t.Errorf("the victim is %s in attempt %d, want it queued for the second", got.Phase, got.Attempt)
	}
	if _, err := w.queries.Explain(w.ctx, query.ExplainRequest{ID: "unknown"}); err == nil || !strings.Contains(err.Error(), "not live") {
		t.Errorf("explaining what is not there returned %v", err)
	}
}

func TestPoliciesThatCannotBeAreRefused(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		strings.Replace(twoTeams, "Any}", "Always}", 1):                    `queues.yaml:11: clusterQueues[0].preemption.reclaimWithinCohort: "Always": want one of Never, LowerPriority, Any`,
		strings.Replace(twoTeams, "nominalQuota: 2", "nominalQuota: x", 1): `queues.yaml:14: clusterQueues[0].resourceGroups[0].flavors[0].resources[0].nominalQuota: "x" is no amount of nvidia.com/gpu`,
		strings.Replace(twoTeams, "cohortName", "cohort", 1):               `queues.yaml:9: clusterQueues[0].cohort: there is no such field; want one of name, cohortName`,
		strings.Replace(twoTeams, "- name: any", "- name: other", 1):       `queues.yaml:14: clusterQueues[0].resourceGroups[0].flavors[0].name: "any": there is no resourceFlavor of this name; there are other`,
	} {
		t.Run(want, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "queues.yaml")
			if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
				t.Fatal(err)
			}
			config := app.Config{NATS: bus.Settings{URL: "nats://localhost"}, DatabaseURL: "postgres://localhost/none", QueuesFile: path}
			if err := config.Validate(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("refused with %v\nwant %s", err, want)
			}
		})
	}
}

// The example of docs/queues.md is a valid file.
func TestTheDocumentedPolicyIsValid(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/queues.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "```yaml\n")
	example, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("docs/queues.md has no example")
	}
	path := filepath.Join(t.TempDir(), "queues.yaml")
	if err := os.WriteFile(path, []byte(example), 0o600); err != nil {
		t.Fatal(err)
	}
	config := app.Config{NATS: bus.Settings{URL: "nats://localhost"}, DatabaseURL: "postgres://localhost/none", QueuesFile: path}
	if err := config.Validate(); err != nil {
		t.Error(err)
	}
	if len(config.Queues) != 2 || len(config.Policy.ClusterQueues) != 2 {
		t.Errorf("the example has %d queues and %d cluster queues", len(config.Queues), len(config.Policy.ClusterQueues))
	}
}
