package app_test

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
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
		"what waits behind its own":      {"west", query.HomeRequest{Waiting: true, After: math.MaxInt64}, 0},
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
	worker := func(change func(*workload.PodSet)) query.HomeRequest {
		return changed(func(w *workload.Workload) { change(&w.PodSets[1]) })
	}
	manifest := func(content string) query.HomeRequest {
		return request(t, "one", &event.WorkloadSubmitted{Workload: madeIn("west", "one", "research"), Manifest: json.RawMessage(content)})
	}
	victim := w.submit(gangOf("victim", "research", 1))
	w.waits(victim, workload.ReasonNoNodes)
	for name, c := range map[string]struct {
		request query.HomeRequest
		want    string
	}{
		"nothing":                   {query.HomeRequest{}, "exactly one of message, ids, placed and waiting"},
		"two questions":             {query.HomeRequest{IDs: []workload.ID{victim}, Waiting: true}, "exactly one of message, ids, placed and waiting"},
		"too many ids":              {query.HomeRequest{IDs: make([]workload.ID, query.MaxPage+1)}, "ids: there are"},
		"no event":                  {query.HomeRequest{Message: json.RawMessage(`[]`), UID: "one"}, "malformed event"},
		"no UID":                    {query.HomeRequest{Message: changed(func(*workload.Workload) {}).Message}, "uid: is missing"},
		"the id of another":         {changed(func(w *workload.Workload) { w.ID = victim }), "is not that of the object"},
		"another UID":               {query.HomeRequest{Message: changed(func(*workload.Workload) {}).Message, UID: "two"}, "is not that of the object"},
		"a user of another cluster": {changed(func(w *workload.Workload) { w.Submitter = "kubernetes/east/ann" }), "is none of the cluster"},
		"a user over HTTP":          {changed(func(w *workload.Workload) { w.Submitter = "http/ann" }), "is none of the cluster"},
		"another queue":             {changed(func(w *workload.Workload) { w.Queue = "theirs" }), "is another one"},
		"no namespace":              {changed(func(w *workload.Workload) { w.Namespace = "" }), `namespace: ""`},
		"no pods":                   {changed(func(w *workload.Workload) { w.PodSets = nil }), "has 0 pods"},
		"fewer pods than none":      {changed(func(w *workload.Workload) { w.PodSets[0].Count = -1 }), `"headgroup": -1 pods`},
		"more pods than a gang has": {worker(func(s *workload.PodSet) { s.Count = workload.MostPods + 1 }), "10001 pods; want 0 to 10000"},
		"numbers that overflow":     {worker(func(s *workload.PodSet) { s.Count = math.MaxInt64 }), "want 0 to 10000"},
		"later than all":            {worker(func(s *workload.PodSet) { s.Later = 2 }), "later: 2"},
		"a negative minimum":        {worker(func(s *workload.PodSet) { s.MinCount = -1 }), "minCount: -1"},
		"a negative step":           {worker(func(s *workload.PodSet) { s.Step = -1 }), "step: -1"},
		"resized before":            {worker(func(s *workload.PodSet) { s.Resized = -5 }), "resized: -5"},
		"two sets of one name":      {worker(func(s *workload.PodSet) { s.Name = "headgroup" }), `two pod sets have the name "headgroup"`},
		"a set without a name":      {worker(func(s *workload.PodSet) { s.Name = "" }), "name: is missing"},
		"a negative request":        {worker(func(s *workload.PodSet) { s.Template.Requests["nvidia.com/gpu"] = -8 }), "nvidia.com/gpu is -8"},
		"the smallest request":      {worker(func(s *workload.PodSet) { s.Template.Requests["cpu"] = math.MinInt64 }), "cpu is -9223372036854775808"},
		"no pod slot":               {worker(func(s *workload.PodSet) { delete(s.Template.Requests, "pods") }), "requests.pods: 0"},
		"many resources": {worker(func(s *workload.PodSet) {
			for i := range workload.MostRequests {
				s.Template.Requests[resource.Name(fmt.Sprint("r", i))] = 1
			}
		}), "resources; want at most 64"},
		"a negative default":        {worker(func(s *workload.PodSet) { s.Template.Unset = workload.Unset{"cpu": {{Base: -1}}} }), "cpu is -1 and 0 times the default"},
		"a default a negative time": {worker(func(s *workload.PodSet) { s.Template.Unset = workload.Unset{"cpu": {{Times: -1}}} }), "cpu is 0 and -1 times the default"},
		"a default of a device":     {worker(func(s *workload.PodSet) { s.Template.Unset = workload.Unset{"nvidia.com/gpu": {{Times: 1}}} }), "want cpu or memory"},
		"a negative ask": {worker(func(s *workload.PodSet) {
			s.Template.Asks = [][]workload.ContainerAsk{{{Name: "c", Limits: resource.List{"cpu": -1}}}}
		}), `container "c": cpu is -1`},
		"a negative slice":              {worker(func(s *workload.PodSet) { s.Topology = &workload.Topology{SliceSize: -2, SliceLevel: "rack"} }), "topology.sliceSize: -2"},
		"a part of a slice":             {worker(func(s *workload.PodSet) { s.Topology = &workload.Topology{SliceSize: 2, SliceLevel: "rack"} }), "topology.sliceSize: 2"},
		"a negative skew":               {worker(func(s *workload.PodSet) { s.Template.Spread = []workload.Spread{{TopologyKey: "zone", MaxSkew: -1}} }), "maxSkew -1"},
		"a port past the last":          {worker(func(s *workload.PodSet) { s.Template.HostPorts = []workload.HostPort{{Port: 1 << 20}} }), "hostPorts: 1048576"},
		"no selector":                   {worker(func(s *workload.PodSet) { s.Clusters = "a b c" }), "want selectors of clusters"},
		"negative retries":              {changed(func(w *workload.Workload) { w.Life.Tolerance = &workload.Tolerance{Retries: new(-1)} }), "retries: -1"},
		"a name that is a path":         {changed(func(w *workload.Workload) { w.Name = "../x" }), `name: "../x"`},
		"another kind":                  {changed(func(w *workload.Workload) { w.Kind = "Pod" }), `kind: "Pod"`},
		"a long submitter":              {changed(func(w *workload.Workload) { w.Submitter += strings.Repeat("x", 1000) }), "want at most 512"},
		"a long UID":                    {query.HomeRequest{Message: changed(func(*workload.Workload) {}).Message, UID: strings.Repeat("x", 129)}, "has 129 bytes"},
		"no manifest":                   {request(t, "one", &event.WorkloadSubmitted{Workload: madeIn("west", "one", "research")}), "the manifest is missing"},
		"a large manifest":              {manifest(`"` + strings.Repeat("x", event.MaxSubmission) + `"`), "manifest has 524290 bytes"},
		"a manifest with NUL":           {manifest(`{"a": "\u0000"}`), "has the character U+0000"},
		"a name with NUL":               {worker(func(s *workload.PodSet) { s.Template.NodeSelector = map[string]string{"zone": "a\x00b"} }), "has the character U+0000"},
		"a deep manifest":               {manifest(strings.Repeat("[", 200) + strings.Repeat("]", 200)), "is nested more than 110 deep"},
		"many values":                   {manifest("[" + strings.Repeat("{},", 30_000) + "1]"), "has more than 60000 values"},
		"many pod sets":                 {changed(func(w *workload.Workload) { w.PodSets = make([]workload.PodSet, workload.MostPodSets+1) }), "129 pod sets"},
		"many warnings":                 {request(t, "one", &event.WorkloadSubmitted{Workload: madeIn("west", "one", "research"), Manifest: json.RawMessage(`{}`), Warnings: make([]string, 33)}), "33 warnings"},
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

// TestStatusesOfWhatMoves: the intake of a cluster reads the statuses of what runs for the objects of
// its cluster, of the present attempt, and no others. What another cluster reports is no such status.
func TestStatusesOfWhatMoves(t *testing.T) {
	t.Parallel()
	w := newWorld(t, app.Queue{Name: "research", Namespaces: []string{"default"}, HomeObjects: workload.MoveFromHome})
	w.node("n", 4)
	gang := madeIn("west", "one", "research")
	gang.Life.Moves = true
	if _, err := w.queries.Home(w.ctx, "west", "research", request(t, "one", submission(gang))); err != nil {
		t.Fatal(err)
	}
	command := w.command(gang.ID, event.Present, 1)
	if command.Home != "west" || command.Name == gang.Name {
		t.Errorf("the command has home %q and name %q", command.Home, command.Name)
	}
	other := w.submit(gangOf("by-nats", "research", 1))
	w.command(other, event.Present, 1)
	ids := []workload.ID{gang.ID, other}
	statuses := func(cluster string) []query.HomeStatus {
		answer, err := w.queries.Home(w.ctx, cluster, "research", query.HomeRequest{IDs: ids, Statuses: true})
		if err != nil || len(answer.Workloads) > 0 {
			t.Errorf("answered %+v, %v", answer, err)
		}
		return answer.Statuses
	}
	if got := statuses("west"); len(got) > 0 {
		t.Errorf("before the first report the statuses are %+v", got)
	}
	w.publish(event.StatusSubject("east", gang.ID), &event.GangStatus{Workload: gang.ID, Cluster: "east", Attempt: 1, Object: json.RawMessage(`{"state":"forged"}`)})
	w.status(event.GangStatus{Workload: gang.ID, Attempt: 1, Created: true, UID: "u", Object: json.RawMessage(`{"state":"ready"}`)})
	w.status(event.GangStatus{Workload: other, Attempt: 1, Created: true, UID: "v", Object: json.RawMessage(`{"state":"ready"}`)})
	want := query.HomeStatus{Workload: gang.ID, Cluster: cluster, Attempt: 1, Name: command.Name, Status: json.RawMessage(`{"state":"ready"}`)}
	if got := statuses("west"); len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		t.Errorf("the statuses are %+v, want %+v", got, want)
	}
	if got := statuses("east"); len(got) > 0 {
		t.Errorf("another cluster reads %+v", got)
	}
	w.status(event.GangStatus{Workload: gang.ID, Attempt: 7, Created: true, Object: json.RawMessage(`{"state":"ready"}`)})
	if got := statuses("west"); len(got) > 0 {
		t.Errorf("the statuses of another attempt are %+v", got)
	}
	placed := func(cluster string) []workload.Record {
		answer, err := w.queries.Home(w.ctx, cluster, "research", query.HomeRequest{Placed: true})
		if err != nil {
			t.Error(err)
		}
		return answer.Workloads
	}
	if of := placed("west"); len(of) != 1 || of[0].ID != gang.ID || len(placed("east")) > 0 {
		t.Errorf("with places are %+v and, of another cluster, %+v", of, placed("east"))
	}
	many := query.HomeRequest{IDs: make([]workload.ID, query.MostHomeStatuses+1), Statuses: true}
	if answer, err := w.queries.Home(w.ctx, "west", "research", many); err == nil || !strings.Contains(err.Error(), "too many") {
		t.Errorf("a question for too many is answered %+v, %v", answer, err)
	}
}

// TestAVanishedObjectIsCancelledWithoutItsUID: by the intake of its own cluster, when it moves.
func TestAVanishedObjectIsCancelledWithoutItsUID(t *testing.T) {
	t.Parallel()
	w := newWorld(t, app.Queue{Name: "research", Namespaces: []string{"default"}, HomeObjects: workload.MoveFromHome})
	moves, stays := madeIn("west", "one", "research"), madeIn("west", "two", "research")
	moves.Life.Moves = true
	for _, gang := range []workload.Workload{moves, stays} {
		w.submit(gang)
		w.waits(gang.ID, workload.ReasonNoNodes)
	}
	for _, c := range []struct {
		name, cluster string
		id            workload.ID
		cancelled     bool
	}{
		{"another cluster", "east", moves.ID, false},
		{"an object that stays", "west", stays.ID, false},
		{"no workload", "west", event.WorkloadID("test", "nothing"), false},
		{"an object that moves", "west", moves.ID, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := w.queries.Home(w.ctx, c.cluster, "research", request(t, "", &event.WorkloadCancel{Workload: c.id, Why: "gone"}))
			if (err == nil) != c.cancelled || err != nil && !strings.Contains(err.Error(), "of no object that moves") {
				t.Errorf("answered %v, want cancelled: %t", err, c.cancelled)
			}
		})
	}
	w.phase(moves.ID, workload.Cancelled)
	if record := w.recordOf(stays.ID); record.Phase != workload.Queued {
		t.Errorf("the workload of the object that stays is %s", record.Phase)
	}
}
