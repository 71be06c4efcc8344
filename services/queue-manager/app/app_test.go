package app_test

import (
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/app"
)

func TestLifeOfAGang(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("a", 2)
	first := w.submit(gangOf("first", "default", 2))
	command := w.command(first, event.Present, 1)
	if command.Namespace != "default" || len(command.Placements) != 2 || len(command.Manifest) == 0 {
		t.Errorf("command lacks namespace, placements or manifest: %+v", command)
	}
	second := w.submit(gangOf("second", "default", 1))
	shortage := w.waits(second, workload.ReasonFit).Reason.Shortage
	if shortage == nil || shortage.Resource != "nvidia.com/gpu" || shortage.Asked != 1 || shortage.Largest != 0 {
		t.Errorf("shortage is %+v", shortage)
	}

	w.status(event.GangStatus{Workload: first, Attempt: 1, Created: true})
	w.phase(first, workload.Dispatched)
	w.pods(command)
	w.phase(first, workload.Running)
	w.cancel("default", first)
	w.phase(first, workload.Cancelling)
	w.command(first, event.Absent, 1)
	if got := w.one(second).Phase; got != workload.Queued {
		t.Errorf("second is %s before the pods of the first are gone", got)
	}
	w.status(event.GangStatus{Workload: first, Attempt: 1, Gone: true, Released: true})
	w.phase(first, workload.Cancelled)
	w.command(first, event.Forgotten, 1)
	w.command(second, event.Present, 1)

	history, err := w.queries.History(w.ctx, query.HistoryRequest{ID: first})
	if err != nil {
		t.Fatal(err)
	}
	var phases []string
	for _, entry := range history.Entries {
		phases = append(phases, string(entry.Phase))
	}
	if got := strings.Join(phases, " "); got != "queued admitted dispatched running cancelling cancelled" {
		t.Errorf("history of the first is %q", got)
	}
}

// one returns the stored record of a workload.
func (w *world) one(id workload.ID) workload.Record {
	w.t.Helper()
	answer, err := w.queries.Workloads(w.ctx, query.WorkloadsRequest{ID: id})
	if err != nil || len(answer.Workloads) != 1 {
		w.t.Fatalf("workload %s: %+v, %v", id, answer, err)
	}
	return answer.Workloads[0]
}

func TestRejections(t *testing.T) {
	t.Parallel()
	w := newWorld(t, app.Queue{Name: "team", Namespaces: []string{"team", "shared"}})
	w.node("a", 1)
	taken := w.submit(gangOf("taken", "team", 1))
	w.phase(taken, workload.Admitted)
	changed := gangOf("taken", "team", 1)
	changed.Digest = "other content"
	unknown := gangOf("unknown", "nowhere", 1)
	foreign := gangOf("foreign", "team", 1)
	foreign.Namespace = "kube-system"
	namesake := gangOf("namesake", "team", 1)
	namesake.Name = "taken"
	for _, c := range []struct {
		name string
		gang workload.Workload
		kind workload.ReasonKind
		want string
	}{
		{"unknown queue", unknown, workload.ReasonQueue, `queue "nowhere" does not exist or does not admit this submitter`},
		{"foreign namespace", foreign, workload.ReasonQueue, `use one of: team, shared`},
		{"same id, other content", changed, workload.ReasonDuplicate, "other content"},
		{"same name", namesake, workload.ReasonDuplicate, "name RayCluster team/taken is taken by workload"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.submit(c.gang)
			got := await(w, c.name, func(e *event.WorkloadRejected) bool {
				return e.Workload == c.gang.ID && strings.Contains(e.Reason.Message, c.want)
			})
			if got.Reason.Kind != c.kind {
				t.Errorf("%s: rejected as %s, want %s", c.name, got.Reason.Kind, c.kind)
			}
		})
	}
	if got := w.one(taken).Phase; got != workload.Admitted {
		t.Errorf("the first submission became %s", got)
	}
}

func TestTheSameSubmissionTwiceIsOneWorkload(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("a", 4)
	gang := gangOf("once", "default", 1)
	w.submit(gang)
	w.command(gang.ID, event.Present, 1)
	w.submit(gang)
	after := w.submit(gangOf("after", "default", 1))
	w.command(after, event.Present, 1)
	answer, err := w.queries.Workloads(w.ctx, query.WorkloadsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if len(answer.Workloads) != 2 {
		t.Errorf("%d workloads of 2 submissions, one of them repeated", len(answer.Workloads))
	}
}

func TestStrictFIFOLetsNoGangPass(t *testing.T) {
	t.Parallel()
	w := newWorld(t,
		app.Queue{Name: "strict", Namespaces: []string{"strict"}, Strategy: quota.StrictFIFO},
		app.Queue{Name: "loose", Namespaces: []string{"loose"}})
	w.node("a", 2)
	for _, queue := range []string{"strict", "loose"} {
		w.waits(w.submit(gangOf("big-"+queue, queue, 5)), workload.ReasonFit)
	}
	strict := w.submit(gangOf("small-strict", "strict", 1))
	w.waits(strict, workload.ReasonBehindHead)
	w.phase(w.submit(gangOf("small-loose", "loose", 1)), workload.Admitted)
	w.cancel("strict", event.WorkloadID("test", "big-strict"))
	w.phase(strict, workload.Admitted)
}

func TestRestartInTheMiddle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("a", 1)
	first := w.submit(gangOf("first", "default", 1))
	w.command(first, event.Present, 1)
	second := w.submit(gangOf("second", "default", 1))
	w.waits(second, workload.ReasonFit)
	w.stop()
	third := w.submit(gangOf("third", "default", 1)) // while no leader reads
	w.cancel("default", first)
	w.start()
	w.command(first, event.Absent, 1)
	w.waits(third, workload.ReasonFit)
	w.status(event.GangStatus{Workload: first, Attempt: 1, Gone: true, Released: true})
	w.phase(first, workload.Cancelled)
	w.phase(second, workload.Admitted) // before the third, which came later
	if got := w.one(third).Phase; got != workload.Queued {
		t.Errorf("third is %s, want it to wait behind the second", got)
	}
}

func TestALostNodeSendsTheGangBackToItsPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("a", 1)
	gang := w.submit(gangOf("gang", "default", 1))
	w.command(gang, event.Present, 1)
	later := w.submit(gangOf("later", "default", 1))
	w.waits(later, workload.ReasonFit)
	w.publish(event.NodeSubject(cluster, "a"), &event.NodeRemoved{Version: w.nextVersion(), Cluster: cluster, Node: "a"})
	if reason := w.phase(gang, workload.Evicting).Reason; reason == nil || reason.Kind != workload.ReasonNodeLost {
		t.Errorf("evicted because of %+v", reason)
	}
	w.command(gang, event.Absent, 1)
	w.status(event.GangStatus{Workload: gang, Attempt: 1, Gone: true, Released: true})
	await(w, "the gang is queued again", func(e *event.WorkloadChanged) bool {
		return e.ID == gang && e.Phase == workload.Queued && e.Attempt == 2
	})
	w.node("b", 1)
	command := w.command(gang, event.Present, 2)
	if command.Placements[0].Node != "b" {
		t.Errorf("second attempt is placed on %+v", command.Placements)
	}
	if got := w.one(later).Phase; got != workload.Queued {
		t.Errorf("a later gang is %s: it passed the evicted one", got)
	}
}

func TestStaleNewsChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("a", 1)
	gang := w.submit(gangOf("gang", "default", 1))
	w.command(gang, event.Present, 1)
	old := event.Version{Session: 0, Seq: 99}
	w.publish(event.NodeSubject(cluster, "a"), &event.NodeRemoved{Version: old, Cluster: cluster, Node: "a"})
	w.publish(event.SyncedSubject(cluster), &event.CapacitySynced{Version: old, Cluster: cluster})
	w.status(event.GangStatus{Workload: gang, Attempt: 7, Gone: true, Released: true})
	w.status(event.GangStatus{Workload: gang, Attempt: 1, Created: true})
	w.phase(gang, workload.Dispatched)
	record := w.one(gang)
	if record.Phase != workload.Dispatched || record.Attempt != 1 || !record.Holding {
		t.Errorf("stale news changed the workload: %+v", record)
	}
}

func TestAFullListTakesAwayWhatItLacks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("a", 1)
	w.node("b", 1)
	w.publish(event.SyncedSubject(cluster), &event.CapacitySynced{Version: w.nextVersion(), Cluster: cluster, Nodes: []string{"b"}})
	w.nodes("b alone is left", func(nodes []query.Node) bool { return len(nodes) == 1 && nodes[0].Name == "b" })
	gang := w.submit(gangOf("two", "default", 2))
	if shortage := w.waits(gang, workload.ReasonFit).Reason.Shortage; shortage.Sum != 1 {
		t.Errorf("shortage %+v, want one GPU in sum: node a is gone", shortage)
	}
}

func TestPodsWithoutReservationAreCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("a", 1)
	w.publish(event.GangSubject(cluster, "stray"), &event.GangObserved{
		Version: w.nextVersion(), Cluster: cluster, Workload: "stray",
		Pods: []event.GangPod{{Name: "p", Node: "a", Phase: "Running", Requests: resource.List{"nvidia.com/gpu": 1, "pods": 1}}},
	})
	w.nodes("the stray pod is counted", func(nodes []query.Node) bool { return nodes[0].Free["nvidia.com/gpu"] == 0 })
	gang := w.submit(gangOf("gang", "default", 1))
	w.waits(gang, workload.ReasonFit)
	w.publish(event.GangSubject(cluster, "stray"), &event.GangObserved{Version: w.nextVersion(), Cluster: cluster, Workload: "stray"})
	w.phase(gang, workload.Admitted)
}

func TestWhatPostgresCannotStoreIsSetApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("a", 4)
	bad := gangOf("bad", "default", 1)
	bad.PodSets[1].Template.NodeSelector = map[string]string{"key": "nul \x00 byte"}
	before := w.submit(gangOf("before", "default", 1))
	w.submit(bad)
	after := w.submit(gangOf("after", "default", 1))
	if got := w.rejected(bad.ID).Reason; got.Kind != workload.ReasonNotStorable || !strings.Contains(got.Message, "cannot be stored") {
		t.Errorf("rejected because of %+v", got)
	}
	w.notStorable("submission")
	w.command(before, event.Present, 1)
	w.command(after, event.Present, 1)
}

func TestAnObjectThatIsRefusedFreesItsPlaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("a", 1)
	refused := w.submit(gangOf("refused", "default", 1))
	w.command(refused, event.Present, 1)
	next := w.submit(gangOf("next", "default", 1))
	w.waits(next, workload.ReasonFit)
	w.status(event.GangStatus{Workload: refused, Attempt: 1, Refused: true, Message: "RayCluster default/refused exists already"})
	if got := w.phase(refused, workload.Failed).Reason; got.Kind != workload.ReasonRefused {
		t.Errorf("failed because of %+v", got)
	}
	w.phase(next, workload.Admitted)
}

func TestTimesAreInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("a", 1)
	gang := w.submit(gangOf("gang", "default", 1))
	command := w.command(gang, event.Present, 1)
	w.pods(command) // seen running before its creation is reported
	times := w.phase(gang, workload.Running).Times
	order := []time.Time{times.Submitted, times.Admitted, times.Dispatched, times.Running}
	for i := 1; i < len(order); i++ {
		if order[i].IsZero() || order[i].Before(order[i-1]) {
			t.Errorf("times are not in order: %+v", times)
		}
	}
}
