package store_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// A page within some places has the workloads of these places alone, behind any workload
// that is named, and says that more follow only when more of them do.
func TestPagesWithinPlaces(t *testing.T) {
	t.Parallel()
	l := open(t)
	if err := l.SetQueues(t.Context(), l.term.Epoch, []state.Queue{
		{Name: "mine", Namespaces: []string{"a", "b"}, Strategy: quota.BestEffortFIFO}, {Name: "theirs", Namespaces: []string{"a", "c"}, Strategy: quota.BestEffortFIFO},
	}, quota.Config{}); err != nil {
		t.Fatal(err)
	}
	ids := map[string]workload.ID{}
	for i, each := range []struct{ name, queue, namespace string }{
		{"first", "mine", "a"}, {"hidden-1", "theirs", "a"}, {"second", "mine", "b"}, {"hidden-2", "theirs", "c"}, {"third", "mine", "a"}, {"hidden-3", "theirs", "a"},
	} {
		changes := admitted(int64(i+1), each.name, 1, 1, 1)
		w := &changes.Added[0].Workload
		w.Queue, w.Namespace = each.queue, each.namespace
		if each.queue == "mine" {
			w.Submitter = "kubernetes/west/ann"
		}
		if each.name == "second" {
			w.Submitter = "kubernetes/west" // its user is unknown
		}
		l.commit(t, changes)
		ids[each.name] = w.ID
	}
	all, some := []query.Place{{Queue: "mine"}}, []query.Place{{Queue: "mine", Namespaces: []string{"a", "z"}}, {Queue: "theirs", Namespaces: []string{"c"}}}
	for name, c := range map[string]struct {
		request query.WorkloadsRequest
		want    []string
		more    bool
	}{
		"a queue":                  {query.WorkloadsRequest{Within: all}, []string{"first", "second", "third"}, false},
		"its first page":           {query.WorkloadsRequest{Within: all, Limit: 1}, []string{"first"}, true},
		"its next page":            {query.WorkloadsRequest{Within: all, Limit: 1, AfterID: ids["first"]}, []string{"second"}, true},
		"its last page":            {query.WorkloadsRequest{Within: all, Limit: 1, AfterID: ids["second"]}, []string{"third"}, false},
		"namespaces of two queues": {query.WorkloadsRequest{Within: some}, []string{"first", "hidden-2", "third"}, false},
		"a name elsewhere":         {query.WorkloadsRequest{Within: all, Name: "hidden-1"}, nil, false},
		"a queue elsewhere":        {query.WorkloadsRequest{Within: all, Queue: "theirs", Limit: 1}, nil, false},
		"behind none":              {query.WorkloadsRequest{Within: all, AfterID: "00000000-0000-5000-8000-000000000000"}, nil, false},
		"behind no id":             {query.WorkloadsRequest{Within: all, AfterID: "x"}, nil, false},
		"everywhere":               {query.WorkloadsRequest{AfterID: ids["hidden-2"]}, []string{"third", "hidden-3"}, false},
		"several ids, one is none": {query.WorkloadsRequest{IDs: []workload.ID{ids["third"], "x", ids["first"], "00000000-0000-5000-8000-000000000000"}}, []string{"first", "third"}, false},
		"ids that are none":        {query.WorkloadsRequest{IDs: []workload.ID{"x"}}, nil, false},
		"made in a cluster":        {query.WorkloadsRequest{Home: "west"}, []string{"first", "second", "third"}, false},
		"the first page of these":  {query.WorkloadsRequest{Home: "west", Limit: 1}, []string{"first"}, true},
		"the last page of these":   {query.WorkloadsRequest{Home: "west", Limit: 2, After: 2}, []string{"second", "third"}, false},
		"made in another cluster":  {query.WorkloadsRequest{Home: "wes"}, nil, false},
		"several ids in a queue":   {query.WorkloadsRequest{IDs: []workload.ID{ids["third"], ids["hidden-1"]}, Within: all}, []string{"third"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer, err := l.Workloads(t.Context(), c.request)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range answer.Workloads {
				got = append(got, w.Name)
			}
			if !slices.Equal(got, c.want) || (answer.Next != 0) != c.more {
				t.Errorf("the page is %v, next %d; want %v, more %t", got, answer.Next, c.want, c.more)
			}
		})
	}
}

// TestThoseThatHoldPlacesAreFoundByThem: where many wait, the workloads that hold places are found
// without reading those that do not.
func TestThoseThatHoldPlacesAreFoundByThem(t *testing.T) {
	t.Parallel()
	l := open(t)
	held := admitted(1, "held", 1, 1, 1)
	held.Added[0].Phase = workload.Running
	l.commit(t, held)
	waits := admitted(2, "waits", 1, 1, 1)
	waits.Added[0].Phase, waits.Added[0].Holding, waits.Added[0].Cluster, waits.Reserved = workload.Queued, false, "", nil
	l.commit(t, waits)
	db, err := pgx.Connect(t.Context(), l.url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context())
	seedWaiting(t, db, l.term.Epoch)
	for name, request := range map[string]query.WorkloadsRequest{
		"all": {Phases: []workload.Phase{workload.Admitted, workload.Dispatched, workload.Running, workload.Evicting, workload.Cancelling}}, "running": {Phases: []workload.Phase{workload.Running}},
		"of a queue": {Queue: "q", Phases: []workload.Phase{workload.Running}}, "of places": {Within: []query.Place{{Queue: "q"}}, Phases: []workload.Phase{workload.Running}},
	} {
		t.Run(name, func(t *testing.T) {
			request.Limit = query.MaxPage
			plan, err := l.PlanOf(t.Context(), request)
			if err != nil || strings.Contains(plan, "Seq Scan on workloads") || !strings.Contains(plan, "workloads_pkey") {
				t.Errorf("%v, the plan reads those that wait: %s", err, plan)
			}
			answer, err := l.Workloads(t.Context(), request)
			if err != nil || len(answer.Workloads) != 1 || answer.Workloads[0].Name != "held" {
				t.Errorf("%v, %d workloads: %v", err, len(answer.Workloads), answer.Workloads)
			}
		})
	}
	if answer, err := l.Workloads(t.Context(), query.WorkloadsRequest{Phases: []workload.Phase{workload.Queued, workload.Running}, Limit: 3}); err != nil || len(answer.Workloads) != 3 {
		t.Errorf("%v, %d of those that wait or run", err, len(answer.Workloads))
	}
}

// seedWaiting adds 5,000 workloads like the one that waits.
func seedWaiting(t *testing.T, db *pgx.Conn, epoch int64) {
	t.Helper()
	if _, err := db.Exec(t.Context(), fmt.Sprintf(`BEGIN; SELECT assert_leader(%d);
		INSERT INTO workloads SELECT (jsonb_populate_record(w, jsonb_build_object('id', md5(i::text)::uuid, 'name', 'w' || i, 'submission', 10 + i))).*
		FROM workloads w, generate_series(1, 5000) i WHERE phase = 'queued';
		COMMIT; ANALYZE workloads, reservations`, epoch)); err != nil {
		t.Fatal(err)
	}
}

// A selector chooses by the labels of the manifest, of workloads that live and that have
// ended; of an AppWrapper by those of its first object.
func TestWorkloadsAreSelectedByLabels(t *testing.T) {
	t.Parallel()
	l := open(t)
	for i, each := range []struct {
		name, manifest string
		ended          bool
	}{
		{"vision", `{"metadata":{"labels":{"team":"vision","stage":"test","example.org/old":""}}}`, false},
		{"ended", `{"metadata":{"labels":{"team":"vision"}}}`, true},
		{"speech", `{"metadata":{"labels":{"team":"speech"}}}`, false},
		{"wrapper", `{"items":[{"object":{"metadata":{"labels":{"team":"vision"}}}},{"object":{"metadata":{"labels":{"team":"speech"}}}}]}`, false},
		{"none", `{"metadata":{"name":"none"}}`, false},
		{"odd", `{"metadata":{"labels":"team"}}`, false},
		{"number", `{"metadata":{"labels":{"team":7,"none":null,"stage":"test"}}}`, true},
		{"no text", `{"metadata":{"labels":{"team":"vision\u0000"}}}`, true},
	} {
		changes := admitted(int64(i+1), each.name, 1, 1, 1)
		changes.Added[0].Manifest = json.RawMessage(each.manifest)
		if each.ended {
			r := &changes.Added[0].Record
			r.Phase, r.Holding, r.Placements, changes.Reserved = workload.Failed, false, nil, nil
			r.Times.Finished = r.Times.Submitted
		}
		l.commit(t, changes)
	}
	for selector, want := range map[string][]string{
		"team=vision":               {"vision", "ended", "wrapper"},
		"team in (vision,speech)":   {"vision", "ended", "speech", "wrapper"},
		"team!=vision":              {"speech", "none", "odd", "number", "no text"},
		"team":                      {"vision", "ended", "speech", "wrapper", "number"},
		"!team":                     {"none", "odd", "no text"},
		"team in (7,8)":             {"number"},
		"none":                      nil,
		"team=vision,stage!=test":   {"ended", "wrapper"},
		"example.org/old":           {"vision"},
		"example.org/old=,stage":    {"vision"},
		"team=vision' OR 'a'='a":    nil,
		"stage notin (test),!other": {"ended", "speech", "wrapper", "none", "odd", "no text"},
	} {
		t.Run(selector, func(t *testing.T) {
			t.Parallel()
			labels, err := query.ParseSelector(selector)
			if strings.Contains(selector, "OR") {
				labels, err = []query.LabelRequirement{{Key: selector, Operator: query.LabelExists}}, nil // no text of SQL
			}
			if err != nil {
				t.Fatal(err)
			}
			answer, err := l.Workloads(t.Context(), query.WorkloadsRequest{Labels: labels})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range answer.Workloads {
				got = append(got, w.Name)
			}
			if !slices.Equal(got, want) || !answer.Selected {
				t.Errorf("selected are %v, want %v; it says so: %t", got, want, answer.Selected)
			}
		})
	}
	if _, err := l.Workloads(t.Context(), query.WorkloadsRequest{Labels: []query.LabelRequirement{{Key: "a", Operator: "Like"}}}); err == nil {
		t.Error("an operator that there is not is taken")
	}
}

// Where more wait in a queue than are read, no workload has a place that counts too few before
// it: those of the same ClusterQueue behind the last one that was read are left out, those of
// another one are not.
func TestPlacesBehindWhatIsRead(t *testing.T) {
	t.Parallel()
	l := open(t)
	if err := l.SetQueues(t.Context(), l.term.Epoch, []state.Queue{
		{Name: "user-queue", Namespaces: []string{"a", "b"}, Strategy: quota.BestEffortFIFO}, {Name: "batch", Namespaces: []string{"a", "c"}, Strategy: quota.BestEffortFIFO},
	}, quota.Config{}); err != nil {
		t.Fatal(err)
	}
	ids := map[workload.ID]string{}
	for i, each := range []struct{ name, queue, namespace string }{
		{"first", "user-queue", "a"}, {"second", "batch", "a"}, {"third", "user-queue", "b"}, {"behind", "user-queue", "a"}, {"later", "batch", "a"}, {"other", "batch", "c"},
	} {
		changes := admitted(int64(i+1), each.name, 1, 1, 1)
		changes.Reserved = nil
		w := &changes.Added[0]
		w.Queue, w.Namespace, w.Phase, w.Cluster, w.Holding = each.queue, each.namespace, workload.Queued, "", false
		l.commit(t, changes)
		ids[w.ID] = each.name
	}
	led := map[state.LocalQueueKey]string{
		{Namespace: "a", Queue: "user-queue"}: "cq-a", {Namespace: "b", Queue: "user-queue"}: "cq-b",
		{Namespace: "a", Queue: "batch"}: "cq-a", {Namespace: "c", Queue: "batch"}: "cq-c",
	}
	for name, c := range map[string]struct {
		most int
		want []string
	}{
		"all":        {9, []string{"first", "second", "third", "behind", "later", "other"}},
		"two of one": {2, []string{"first", "second", "third", "other"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, err := l.FirstOf(t.Context(), led, map[string]int{"user-queue": c.most, "batch": 9})
			var got []string
			for _, id := range first {
				got = append(got, ids[id])
			}
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("of at most %d are read %v, %v; want %v", c.most, got, err, c.want)
			}
		})
	}
}
