package app_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/app"
)

// madeIn is a gang of an object that ann made in a cluster with kubectl.
func madeIn(cluster, uid, queue string) workload.Workload {
	w := gangOf("object-"+uid, queue, 1)
	w.ID, w.Namespace = event.WorkloadID(workload.ByKubernetes+"/"+cluster, uid), "default"
	w.Submitter = workload.ByKubernetes + "/" + cluster + "/ann"
	return w
}

// request is what the intake of a cluster passes on about an object.
func request(t *testing.T, uid string, payload event.Payload) query.HomeRequest {
	t.Helper()
	message, err := event.Marshal(event.NewID(), "muster/intake/kubernetes", time.Now(), "", payload)
	if err != nil {
		t.Fatal(err)
	}
	return query.HomeRequest{Message: message, UID: uid}
}

func submission(w workload.Workload) *event.WorkloadSubmitted {
	return &event.WorkloadSubmitted{Workload: w, Manifest: json.RawMessage(`{"kind":"RayCluster","metadata":{"name":"` + w.Name + `"}}`)}
}

// TestObjectsOfAFurtherCluster: the intake of a further cluster submits and cancels the objects of
// its cluster by way of queue-manager, and reads their workloads and no others.
func TestObjectsOfAFurtherCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t, app.Queue{Name: "research", Namespaces: []string{"default"}})
	gang := madeIn("west", "one", "research")
	answer, err := w.queries.Home(w.ctx, "west", "research", request(t, "one", submission(gang)))
	if err != nil || answer.Sequence == 0 {
		t.Fatalf("submit: sequence %d, %v", answer.Sequence, err)
	}
	w.waits(gang.ID, workload.ReasonNoNodes)
	other := w.submit(gangOf("by-nats", "research", 1))
	w.waits(other, workload.ReasonNoNodes)
	for name, c := range map[string]struct {
		cluster string
		request query.HomeRequest
		want    int
	}{
		"its workload":                   {"west", query.HomeRequest{IDs: []workload.ID{gang.ID}}, 1},
		"what waits":                     {"west", query.HomeRequest{Waiting: true}, 1},
		"the workload of another":        {"west", query.HomeRequest{IDs: []workload.ID{other}}, 0},
		"both":                           {"west", query.HomeRequest{IDs: []workload.ID{other, gang.ID}}, 1},
		"its workload, for another":      {"east", query.HomeRequest{IDs: []workload.ID{gang.ID}}, 0},
		"what waits, for another":        {"east", query.HomeRequest{Waiting: true}, 0},
		"a cluster with the same prefix": {"wes", query.HomeRequest{IDs: []workload.ID{gang.ID}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := w.queries.Home(w.ctx, c.cluster, "research", c.request)
			if err != nil || len(answer.Workloads) != c.want || c.want == 1 && answer.Workloads[0].ID != gang.ID {
				t.Errorf("%d workloads, %v; want %d", len(answer.Workloads), err, c.want)
			}
		})
	}
	if _, err := w.queries.Home(w.ctx, "west", "research", request(t, "one", &event.WorkloadCancel{Workload: gang.ID, Why: "deleted"})); err != nil {
		t.Fatal(err)
	}
	w.phase(gang.ID, workload.Cancelled)
}

// TestTheIntakeOfAClusterIsBound: its key is good for no other cluster, queue, workload or message.
func TestTheIntakeOfAClusterIsBound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, app.Queue{Name: "research", Namespaces: []string{"default"}}, app.Queue{Name: "theirs", Namespaces: []string{"default"}})
	changed := func(change func(*workload.Workload)) query.HomeRequest {
		gang := madeIn("west", "one", "research")
		change(&gang)
		return request(t, "one", submission(gang))
	}
	victim := w.submit(gangOf("victim", "research", 1))
	w.waits(victim, workload.ReasonNoNodes)
	for name, c := range map[string]struct {
		request query.HomeRequest
		want    string
	}{
		"nothing":                       {query.HomeRequest{}, "exactly one of message, ids and waiting"},
		"two questions":                 {query.HomeRequest{IDs: []workload.ID{victim}, Waiting: true}, "exactly one of message, ids and waiting"},
		"too many ids":                  {query.HomeRequest{IDs: make([]workload.ID, query.MaxPage+1)}, "ids: there are"},
		"no event":                      {query.HomeRequest{Message: json.RawMessage(`[]`), UID: "one"}, "read the message"},
		"no UID":                        {query.HomeRequest{Message: changed(func(*workload.Workload) {}).Message}, "uid: is missing"},
		"the id of another":             {changed(func(w *workload.Workload) { w.ID = victim }), "is not that of the object"},
		"another UID":                   {query.HomeRequest{Message: changed(func(*workload.Workload) {}).Message, UID: "two"}, "is not that of the object"},
		"a user of another cluster":     {changed(func(w *workload.Workload) { w.Submitter = "kubernetes/east/ann" }), "is none of the cluster"},
		"a user over HTTP":              {changed(func(w *workload.Workload) { w.Submitter = "http/ann" }), "is none of the cluster"},
		"another queue":                 {changed(func(w *workload.Workload) { w.Queue = "theirs" }), "is another one"},
		"no namespace":                  {changed(func(w *workload.Workload) { w.Namespace = "" }), "lacks a namespace"},
		"no pods":                       {changed(func(w *workload.Workload) { w.PodSets = nil }), "pod sets"},
		"fewer pods than none":          {changed(func(w *workload.Workload) { w.PodSets[0].Count = -1 }), "count -1"},
		"the cancellation of another's": {request(t, "one", &event.WorkloadCancel{Workload: victim}), "is not that of object"},
		"an order of operators":         {request(t, "one", &event.WorkloadRelease{Workload: madeIn("west", "one", "research").ID}), "want dev.muster.workload.submitted.v1 or dev.muster.workload.cancel.v1"},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := w.queries.Home(w.ctx, "west", "research", c.request)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("answered %+v, %v; want a refusal with %q", answer, err, c.want)
			}
		})
	}
	answer, err := w.queries.Workloads(w.ctx, query.WorkloadsRequest{})
	if err != nil || len(answer.Workloads) != 1 || answer.Workloads[0].Phase != workload.Queued {
		t.Errorf("the ledger has %+v, %v; want the workload of another as it was", answer.Workloads, err)
	}
}
