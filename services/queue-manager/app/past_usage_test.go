package app_test

import (
	"fmt"
	"math"
	"testing"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// equalsHead is of teams without quota of their own, which share what their cohort
// has by what they used in the past.
const equalsHead = `
fairSharing: {enable: true, usageHalfLifeSeconds: 20}
resourceFlavors:
- name: any
queues:
- {name: team-a, namespaces: [team-a]}
- {name: team-b, namespaces: [team-b]}
- {name: team-c, namespaces: [team-c]}
cohorts:
- name: all
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: any, resources: [{name: nvidia.com/gpu, nominalQuota: 4}]}]
clusterQueues:
`

// equals is the policy of the teams.
func equals() string {
	policy := equalsHead
	for _, team := range []string{"team-a", "team-b", "team-c"} {
		policy += fmt.Sprintf(`- name: %s
  cohortName: all
  quotaCheckStrategy: IgnoreUndeclared
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: any, resources: [{name: nvidia.com/gpu, nominalQuota: 0}]}]
`, team)
	}
	return policy
}

// run has a gang of a queue run.
func (w *world) run(name, queue string) workload.ID {
	w.t.Helper()
	id := w.submit(gangOf(name, queue, 4))
	command := w.command(id, event.Present, 1)
	w.status(event.GangStatus{Workload: id, Attempt: 1, Created: true})
	w.pods(command)
	w.phase(id, workload.Running)
	return id
}

// end cancels a running gang, and waits until its places are free.
func (w *world) end(queue string, id workload.ID) {
	w.t.Helper()
	w.cancel(queue, id)
	w.command(id, event.Absent, 1)
	w.publish(event.GangSubject(cluster, id), &event.GangObserved{Version: w.nextVersion(), Cluster: cluster, Workload: id})
	w.status(event.GangStatus{Workload: id, Attempt: 1, Created: true, Gone: true, Released: true})
	w.phase(id, workload.Cancelled)
}

// TestPastUsageOutlivesTheLeader: a team that used the cluster before waits for one that
// did not, also when another leader decides.
func TestPastUsageOutlivesTheLeader(t *testing.T) {
	t.Parallel()
	w := withPolicy(t, equals())
	w.node("one", 4)
	w.end("team-b", w.run("before", "team-b"))
	blocker := w.run("blocker", "team-c")
	w.stop()
	w.start()
	used := w.submit(gangOf("used", "team-b", 4)) // first
	w.waits(used, workload.ReasonQuota)
	unused := w.submit(gangOf("unused", "team-a", 4))
	w.waits(unused, workload.ReasonQuota)
	w.end("team-c", blocker)
	w.command(unused, event.Present, 1)
	answer, err := w.queries.Workloads(w.ctx, query.WorkloadsRequest{ID: used})
	if err != nil || len(answer.Workloads) != 1 || answer.Workloads[0].Phase != workload.Queued {
		t.Errorf("the gang of the team that used the cluster before is %+v, %v; want it queued", answer.Workloads, err)
	}
}

// sharedQueue is a ClusterQueue of three teams, which orders their gangs by what they used.
const sharedQueue = `
admissionFairSharing: {usageHalfLifeTime: 20s, usageSamplingInterval: 1s}
resourceFlavors:
- name: any
clusterQueues:
- name: shared
  quotaCheckStrategy: IgnoreUndeclared
  admissionScope: {admissionMode: UsageBasedAdmissionFairSharing}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: any, resources: [{name: nvidia.com/gpu, nominalQuota: 4}]}]
localQueues:
- {name: team-a, namespace: team-a, clusterQueue: shared}
- {name: team-b, namespace: team-b, clusterQueue: shared, fairSharing: {weight: 2}}
- {name: team-c, namespace: team-c, clusterQueue: shared}
`

// TestUseOfALocalQueueOutlivesTheLeader: a team that used the ClusterQueue before waits for
// one that did not, also when another leader decides, and readers see who used how much.
func TestUseOfALocalQueueOutlivesTheLeader(t *testing.T) {
	t.Parallel()
	w := withPolicy(t, sharedQueue)
	w.node("one", 4)
	w.end("team-b", w.run("before", "team-b"))
	blocker := w.run("blocker", "team-c")
	w.stop()
	w.start()
	used := w.submit(gangOf("used", "team-b", 4)) // first
	w.waits(used, workload.ReasonQuota)
	unused := w.submit(gangOf("unused", "team-a", 4))
	w.waits(unused, workload.ReasonQuota)
	queues, err := w.queries.Queues(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	use := map[string]workload.PastUse{}
	for _, q := range queues.Queues {
		if len(q.PastUse) == 1 {
			use[q.Name] = q.PastUse[0]
		}
	}
	if b := use["team-b"]; b.Use <= 0 || b.Weight != 2 || math.Abs(b.Use-b.Consumed["nvidia.com/gpu"]/2) > 1e-9 || use["team-c"].Use <= 0 || use["team-a"].Use != 0 || len(use) != 3 {
		t.Errorf("the queues have used %+v", use)
	}
	w.end("team-c", blocker)
	w.command(unused, event.Present, 1)
	answer, err := w.queries.Workloads(w.ctx, query.WorkloadsRequest{ID: used})
	if err != nil || len(answer.Workloads) != 1 || answer.Workloads[0].Phase != workload.Queued {
		t.Errorf("the gang of the team that used the ClusterQueue before is %+v, %v; want it queued", answer.Workloads, err)
	}
}

// TestPastUsageThatIsRefusedEndsNoTerm: without it decisions go on.
func TestPastUsageThatIsRefusedEndsNoTerm(t *testing.T) {
	t.Parallel()
	w := withPolicy(t, equals())
	w.node("one", 4)
	w.stop()
	w.refuseAll("INSERT past_usage")
	w.countTerms()
	w.start()
	for i := range 3 {
		w.end("team-a", w.run(fmt.Sprintf("gang-%d", i), "team-a"))
	}
	if terms := w.terms(); terms > fewTerms {
		t.Errorf("it took %d terms, want at most %d", terms, fewTerms)
	}
}
