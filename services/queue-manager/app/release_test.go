package app_test

import (
	"strings"
	"testing"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// TestForceRelease: what an operator frees by force is free in Postgres at once, but
// the room of pods that are seen is not, and the history says who freed it and why.
func TestForceRelease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("a", 1)
	id := w.submit(gangOf("stuck", "default", 1))
	command := w.command(id, event.Present, 1)
	w.status(event.GangStatus{Workload: id, Attempt: 1, Created: true})
	pods := make([]event.GangPod, 0, len(command.Placements))
	for _, p := range command.Placements {
		for _, set := range command.PodSets {
			if set.Name == p.PodSet {
				pods = append(pods, event.GangPod{Name: p.PodSet, Attempt: 1, PodSet: p.PodSet, Node: p.Node, Phase: "Running", Ready: true, Requests: set.Template.Requests})
			}
		}
	}
	w.publish(event.GangSubject(cluster, id), &event.GangObserved{Version: w.nextVersion(), Cluster: cluster, Workload: id, Pods: pods})
	w.phase(id, workload.Running)
	w.cancel("default", id)
	w.command(id, event.Absent, 1) // and no dispatcher answers
	next := w.submit(gangOf("next", "default", 1))
	w.waits(next, workload.ReasonFit)

	w.publish(event.WorkloadSubject("default"), &event.WorkloadRelease{Workload: id, By: "ann@step", Why: "the cluster is lost"})
	ended := w.phase(id, workload.Cancelled)
	if ended.Holding || ended.Reason.Kind != workload.ReasonReleased || !strings.Contains(ended.Reason.Message, "by force: the cluster is lost") {
		t.Errorf("it ended as %+v because of %+v; want its places free, and who freed them", ended.Record, ended.Reason)
	}
	w.command(id, event.Forgotten, 1)
	w.nodes("the pods are counted", func(nodes []query.Node) bool {
		return nodes[0].Free["nvidia.com/gpu"] == 0 && nodes[0].Reserved["nvidia.com/gpu"] == 0
	})
	w.publish(event.GangSubject(cluster, id), &event.GangObserved{Version: w.nextVersion(), Cluster: cluster, Workload: id})
	w.phase(next, workload.Admitted)
	history, err := w.queries.History(w.ctx, query.HistoryRequest{ID: id})
	if err != nil || !strings.Contains(history.Entries[len(history.Entries)-1].Reason.Message, "ann@step") {
		t.Errorf("the history is %+v, %v; want who freed the places", history, err)
	}
}
