package app_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// tenants is the usual layout of Kueue with several tenants: LocalQueues of one name, each
// with a ClusterQueue of its own.
const tenants = `
resourceFlavors:
- name: any
localQueues:
- {name: user-queue, namespace: default, clusterQueue: team-a-cq}
- {name: user-queue, namespace: team-a, clusterQueue: team-a-cq}
- {name: user-queue, namespace: team-b, clusterQueue: team-b-cq}
- {name: batch, namespace: team-b, clusterQueue: team-b-cq}
clusterQueues:
- name: idle-cq
  quotaCheckStrategy: IgnoreUndeclared
  resourceGroups: ` + twoGPUs + `
- {name: team-a-cq, quotaCheckStrategy: IgnoreUndeclared, resourceGroups: ` + twoGPUs + `}
- {name: team-b-cq, quotaCheckStrategy: IgnoreUndeclared, resourceGroups: ` + twoGPUs + `}
`

const twoGPUs = `[{coveredResources: [nvidia.com/gpu], flavors: [{name: any, resources: [{name: nvidia.com/gpu, nominalQuota: 2}]}]}]`

// in is a gang that is submitted to a queue of a namespace.
func in(namespace, queue, name string, workers int) workload.Workload {
	gang := gangOf(name, queue, workers)
	gang.Namespace = namespace
	return gang
}

// TestQueuesOfOneName: a queue of each namespace is a row with the counts and the quota of
// its own, and ClusterQueues count what is charged to them.
func TestQueuesOfOneName(t *testing.T) {
	t.Parallel()
	w := withPolicy(t, tenants)
	w.node("one", 8)
	w.command(w.submit(in("team-a", "user-queue", "a-runs", 2)), event.Present, 1)
	w.command(w.submit(in("team-b", "user-queue", "b-runs", 1)), event.Present, 1)
	waiting := []workload.ID{
		w.submit(in("team-a", "user-queue", "a-waits", 1)), w.submit(in("team-b", "user-queue", "b-waits", 2)),
		w.submit(in("default", "user-queue", "d-waits", 1)), w.submit(in("team-b", "batch", "b-batch", 2)),
	}
	for _, id := range waiting {
		w.waits(id, workload.ReasonQuota)
	}
	answer, err := w.queries.Queues(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	var rows, charged []string
	for _, q := range answer.Queues {
		gpus, _ := used(q)
		rows = append(rows, fmt.Sprintf("%s %v: %s waiting %d live %d used %d reserved %d", q.Name, q.Namespaces, q.ClusterQueue, q.Waiting, q.Live, gpus, q.Reserved["nvidia.com/gpu"]))
	}
	want := []string{
		"batch [team-b]: team-b-cq waiting 1 live 0 used 1 reserved 0",
		"user-queue [default]: team-a-cq waiting 1 live 0 used 2 reserved 0",
		"user-queue [team-a]: team-a-cq waiting 1 live 1 used 2 reserved 2",
		"user-queue [team-b]: team-b-cq waiting 1 live 1 used 1 reserved 1",
	}
	if !slices.Equal(rows, want) {
		t.Errorf("the queues are\n%s\nwant\n%s", strings.Join(rows, "\n"), strings.Join(want, "\n"))
	}
	for _, q := range answer.ClusterQueues {
		gpus, _ := used(query.Queue{Quota: q.Quota})
		charged = append(charged, fmt.Sprintf("%s %v waiting %d live %d used %d", q.Name, q.Queues, q.Waiting, q.Live, gpus))
	}
	want = []string{
		"idle-cq [] waiting 0 live 0 used 0",
		"team-a-cq [default/user-queue team-a/user-queue] waiting 2 live 1 used 2",
		"team-b-cq [team-b/batch team-b/user-queue] waiting 2 live 1 used 1",
	}
	if !slices.Equal(charged, want) {
		t.Errorf("the ClusterQueues are\n%s\nwant\n%s", strings.Join(charged, "\n"), strings.Join(want, "\n"))
	}
	for i, place := range []int32{1, 1, 2, 2} {
		explained, err := w.queries.Explain(w.ctx, query.ExplainRequest{ID: waiting[i]})
		if err != nil || int32(explained.Position) != place || w.one(waiting[i]).Position != place {
			t.Errorf("%s is at %d in the list and at %d as explained, %v; want %d",
				w.one(waiting[i]).Name, w.one(waiting[i]).Position, explained.Position, err, place)
		}
	}
}

// TestQuotaWhileNodesAreAskedFor: a gang that asks for nodes holds its quota, so the queue
// uses it.
func TestQuotaWhileNodesAreAskedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("one", 0)
	w.apply(oneQueue)
	asks := w.submit(gangOf("asks", "user-queue", 1))
	w.waits(asks, workload.ReasonProvisioning)
	next := w.submit(gangOf("next", "user-queue", 1))
	w.waits(next, workload.ReasonQuota)
	q := w.queue("user-queue")
	if gpus, _ := used(q); gpus != 1 || q.Waiting != 2 || q.Provisioning != 1 || q.Live != 0 {
		t.Errorf("queue %+v uses %d GPUs; want 1, two that wait and one of them that holds quota", q, gpus)
	}
	w.cancel("user-queue", asks)
	w.waits(next, workload.ReasonProvisioning)
	q = w.queue("user-queue")
	if gpus, _ := used(q); gpus != 1 || q.Waiting != 1 || q.Provisioning != 1 {
		t.Errorf("with the next one queue %+v uses %d GPUs; want 1, and one that waits and holds quota", q, gpus)
	}
}

// TestAnOperatorHoldsOneOfTheTenants: a hold of a namespace is for its queue alone, and one of a
// ClusterQueue for all queues that lead to it.
func TestAnOperatorHoldsOneOfTheTenants(t *testing.T) {
	t.Parallel()
	w := withPolicy(t, tenants)
	w.node("one", 8)
	hold := func(r query.HoldRequest) {
		t.Helper()
		r.By = "ann@ops"
		if _, err := w.queries.Hold(w.ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	hold(query.HoldRequest{Queue: "user-queue", Namespace: "team-a"})
	hold(query.HoldRequest{ClusterQueue: "team-b-cq"})
	a, batch := w.submit(in("team-a", "user-queue", "a", 1)), w.submit(in("team-b", "batch", "b", 1))
	if why := w.waits(a, workload.ReasonHeld).Reason.Message; !strings.HasPrefix(why, `queue "user-queue" of namespace "team-a" is held since `) {
		t.Errorf("a waits because %q", why)
	}
	if why := w.waits(batch, workload.ReasonHeld).Reason.Message; !strings.HasPrefix(why, `clusterQueue "team-b-cq" is held since `) {
		t.Errorf("b waits because %q", why)
	}
	w.command(w.submit(in("default", "user-queue", "d", 1)), event.Present, 1)
	answer, err := w.queries.Queues(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range answer.Queues {
		if (q.Hold != nil) != (q.Title() == "team-a/user-queue") || (q.ClusterQueueHold != nil) != (q.ClusterQueue == "team-b-cq") {
			t.Errorf("queue %s has the holds %+v and %+v", q.Title(), q.Hold, q.ClusterQueueHold)
		}
	}
	for _, q := range answer.ClusterQueues {
		if (q.Hold != nil) != (q.Name == "team-b-cq") {
			t.Errorf("ClusterQueue %s has the hold %+v", q.Name, q.Hold)
		}
	}
	w.metric("muster_queues_held", 3) // two of team-b
	w.stop()
	w.start() // another leader
	w.metric("muster_queues_held", 3)
	hold(query.HoldRequest{Queue: "user-queue", Namespace: "team-a", Resume: true})
	w.command(a, event.Present, 1)
	hold(query.HoldRequest{ClusterQueue: "team-b-cq", Resume: true})
	w.command(batch, event.Present, 1)
	if _, err := w.queries.Hold(w.ctx, query.HoldRequest{Queue: "user-queue", ClusterQueue: "team-b-cq"}); err == nil || !strings.Contains(err.Error(), "want one of them") {
		t.Errorf("a hold of both is answered by %v", err)
	}
}
