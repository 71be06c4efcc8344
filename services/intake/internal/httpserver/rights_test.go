package httpserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// TestAHiddenWorkloadIsAMissingOne: a workload of others gets the answer of one that does
// not exist, by every path.
func TestAHiddenWorkloadIsAMissingOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, DefaultLimits())
	for _, c := range []struct{ method, suffix string }{
		{http.MethodGet, ""}, {http.MethodGet, "/explanation"}, {http.MethodGet, "/events"}, {http.MethodDelete, ""}, {http.MethodPost, "/move?queue=a"},
		{http.MethodPut, "/hold"}, {http.MethodDelete, "/hold"}, {http.MethodPost, "/requeue"}, {http.MethodPut, "/checkpoint"},
	} {
		t.Run(c.method+c.suffix, func(t *testing.T) {
			t.Parallel()
			for _, id := range []workload.ID{foreign, unknown} {
				answer, body := w.ask(t, "alice", c.method, "/v1/workloads/"+string(id)+c.suffix, "")
				refused(t, answer, body, http.StatusNotFound, fmt.Sprintf("there is no workload %q", id))
			}
		})
	}
}

// TestAnOperatorSeesAll: an operator sees the workloads of all tenants, and what their
// reasons say of others; a tenant sees its own, without that.
func TestAnOperatorSeesAll(t *testing.T) {
	t.Parallel()
	for caller, want := range map[string]struct {
		seen    []workload.ID
		foreign []workload.ID // in the reason of the first
		within  []query.Place // of what queue-manager is asked for
	}{
		"olga":  {[]workload.ID{own, foreign}, []workload.ID{foreign}, nil},
		"alice": {[]workload.ID{own}, nil, []query.Place{{Queue: "a", Namespaces: []string{"a1"}}}},
	} {
		t.Run(caller, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, DefaultLimits())
			_, body := w.ask(t, caller, http.MethodGet, "/v1/workloads", "")
			var page httpapi.WorkloadsPage
			if err := json.Unmarshal([]byte(body), &page); err != nil || len(page.Workloads) == 0 {
				t.Fatalf("page %s: %v", body, err)
			}
			var seen []workload.ID
			for _, record := range page.Workloads {
				seen = append(seen, record.ID)
			}
			if diff := cmp.Diff(want.seen, seen); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(want.foreign, page.Workloads[0].Reason.Foreign); diff != "" {
				t.Errorf("the reason names others:\n%s", diff)
			}
			if diff := cmp.Diff([]query.WorkloadsRequest{{Within: want.within}}, w.listed); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestPolicyIsForOperators: an operator gets the cohorts, flavors and priority classes with
// the queues; a tenant gets its own queues and nothing else.
func TestPolicyIsForOperators(t *testing.T) {
	t.Parallel()
	for caller, want := range map[string]struct {
		queues []string
		policy int
	}{"olga": {[]string{"a", "b", "local", "local"}, 4}, "alice": {[]string{"a"}, 0}, "mallory": {nil, 0}} {
		t.Run(caller, func(t *testing.T) {
			t.Parallel()
			_, body := newWorld(t, DefaultLimits()).ask(t, caller, http.MethodGet, "/v1/queues", "")
			var answer query.QueuesAnswer
			if err := json.Unmarshal([]byte(body), &answer); err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			var queues []string
			for _, q := range answer.Queues {
				queues = append(queues, q.Name)
			}
			if diff := cmp.Diff(want.queues, queues); diff != "" {
				t.Error(diff)
			}
			if got := len(answer.ClusterQueues) + len(answer.Cohorts) + len(answer.Flavors) + len(answer.PriorityClasses); got != want.policy {
				t.Errorf("%s has %d of cohorts, flavors and classes, want %d", body, got, want.policy)
			}
		})
	}
}

// TestACallerIsNamed: each caller gets its own name, and whether it is an operator.
func TestACallerIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, DefaultLimits())
	for caller, want := range map[string]httpapi.Caller{"olga": {Name: "olga", Operator: true}, "mallory": {Name: "mallory"}} {
		t.Run(caller, func(t *testing.T) {
			t.Parallel()
			_, body := w.ask(t, caller, http.MethodGet, "/v1/caller", "")
			var got httpapi.Caller
			if err := json.Unmarshal([]byte(body), &got); err != nil || got != want {
				t.Errorf("%s is %+v, %v; want %+v", caller, got, err, want)
			}
		})
	}
	if answer, _ := w.ask(t, "", http.MethodGet, "/v1/caller", ""); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("an unknown caller gets status %d", answer.StatusCode)
	}
}

// TestACallerWithoutAQueue: it gets an empty list, and queue-manager is not asked, because
// no place means everywhere there.
func TestACallerWithoutAQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, DefaultLimits())
	for _, path := range []string{"/v1/workloads", "/v1/workloads?queue=a"} {
		answer, body := w.ask(t, "mallory", http.MethodGet, path, "")
		if answer.StatusCode != http.StatusOK || body != "{\"workloads\":[]}\n" || len(w.listed) > 0 {
			t.Errorf("%s: %d %s, queue-manager was asked for %v; want an empty list without a question", path, answer.StatusCode, body, w.listed)
		}
	}
}

// TestOnlyOperators: the operations on all of Muster are refused to tenants before
// queue-manager is asked.
func TestOnlyOperators(t *testing.T) {
	t.Parallel()
	w := newWorld(t, DefaultLimits())
	for _, operation := range httpapi.Operations() {
		if !operation.Operators {
			continue
		}
		path := strings.NewReplacer("{queue}", "a", "{clusterQueue}", "b", "{cluster}", "east", "{reservation}", "window", "{id}", string(foreign)).Replace(operation.Path)
		path += map[string]string{"release": "?why=away", "setPriority": "?value=0"}[operation.ID] // the workload holds no places, and has this priority
		answer, body := w.ask(t, "alice", operation.Method, path, "")
		refused(t, answer, body, http.StatusForbidden, "http/alice is no operator")
		if operation.ID == "reserve" || operation.ID == "unreserve" {
			continue // they answer with a reservation that is stored, and nothing is stored here
		}
		answer, body = w.ask(t, "olga", operation.Method, path, "")
		if answer.StatusCode != operation.Status {
			t.Errorf("%s by an operator: %d %s", operation.ID, answer.StatusCode, body)
		}
	}
	if diff := cmp.Diff([]query.HoldRequest{{Queue: "a", By: "http/olga"}, {ClusterQueue: "b", By: "http/olga"},
		{Join: &quota.Cluster{Name: "east"}, By: "http/olga"}, {Cluster: "east", Leave: true, By: "http/olga"}, {Cluster: "east", By: "http/olga"}}, w.holds); diff != "" {
		t.Errorf("holds (neither is held, so there is nothing to resume):\n%s", diff)
	}
}

// TestDeadLettersHaveNoContent: it may have secrets of a submitter.
func TestDeadLettersHaveNoContent(t *testing.T) {
	t.Parallel()
	_, body := newWorld(t, DefaultLimits()).ask(t, "olga", http.MethodGet, "/v1/dead-letters", "")
	var got httpapi.DeadLetters
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	want := httpapi.DeadLetters{DeadLetters: []httpapi.DeadLetter{{Subject: "muster.submit.b", Sequence: 7, Reason: `no manifest: data is "...", want an object`, Bytes: 16}}, Older: httpapi.MostDeadLetters}
	if diff := cmp.Diff(want, got); diff != "" || strings.Contains(body, "letmein") {
		t.Errorf("%s (-want +got):\n%s", body, diff)
	}
}

// A reason keeps what it says of the fault, and nothing that it quotes.
func TestReasonsOfDeadLettersQuoteNothing(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"no manifest": "no manifest",
		`field a is "letmein" and b "letmein"; no`:  `field a is "..." and b "..."; no`,
		"cannot unmarshal !!str `letmein` into int": "cannot unmarshal !!str `...` into int",
		"a `letmein \"letmein` b":                   "a `...` b",
		`it is "a\"letmein\\" here`:                 `it is "..." here`,
		`the end is cut off: "letmein`:              `the end is cut off: "...`,
		`the end is cut off: "letmein\`:             `the end is cut off: "...`,
	} {
		t.Run(text, func(t *testing.T) {
			if got := withoutQuotes(text); got != want {
				t.Errorf("%s became %s, want %s", text, got, want)
			}
		})
	}
}

// TestTheEventsOfOthersAreNotRead: NATS sends a caller the events of its own queues only, and a
// caller without a queue is answered at once.
func TestTheEventsOfOthersAreNotRead(t *testing.T) {
	t.Parallel()
	queues := map[string]query.Queue{
		"a": {Name: "a", Namespaces: []string{"a1", "a2"}, Submitters: []workload.Submitters{{Who: []string{"http/alice"}, Namespaces: []string{"a2"}}}},
		"b": {Name: "b", Namespaces: []string{"b1"}, Submitters: []workload.Submitters{{Who: []string{"http/bob", "http/alice"}}}},
		"c": {Name: "c", Namespaces: []string{"c1"}, Submitters: []workload.Submitters{{Who: []string{"http/bob"}}}},
	}
	many := map[string]query.Queue{}
	for i := range mostSubjects + 1 {
		name := fmt.Sprintf("q%d", i)
		many[name] = query.Queue{Name: name, Namespaces: []string{"n"}, Submitters: []workload.Submitters{{Who: []string{"http/alice"}}}}
	}
	s := &Server{Options: Options{Operators: []string{"olga"}}}
	for name, c := range map[string]struct {
		queues map[string]query.Queue
		caller string
		want   []string
	}{
		"of two queues":   {queues, "http/alice", []string{"muster.events.a.*", "muster.events.b.*"}},
		"of no queue":     {queues, "http/mallory", nil},
		"of an operator":  {queues, "http/olga", []string{"muster.events.*.*"}},
		"of many queues":  {many, "http/alice", []string{"muster.events.*.*"}},
		"of none of many": {many, "http/bob", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, s.visibleSubjects(c.queues, c.caller)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	w := newWorld(t, DefaultLimits()) // without NATS: nothing is asked of it
	for _, path := range []string{"/v1/events", "/v1/events?since=2026-01-01T00:00:00Z&follow=false"} {
		if answer, body := w.ask(t, "mallory", http.MethodGet, path, ""); answer.StatusCode != http.StatusOK || body != "" {
			t.Errorf("GET %s of a caller without a queue: %d %q, want an empty stream", path, answer.StatusCode, body)
		}
	}
}

// TestTheNamesOfOtherQueuesStayHidden: a tenant gets the answer of a queue that does not
// exist.
func TestTheNamesOfOtherQueuesStayHidden(t *testing.T) {
	t.Parallel()
	w := newWorld(t, DefaultLimits())
	for _, path := range []string{"/v1/queues/b", "/v1/queues/b/events", "/v1/queues/c", "/v1/queues/c/events"} {
		answer, body := w.ask(t, "alice", http.MethodGet, path, "")
		refused(t, answer, body, http.StatusNotFound, "there is no queue")
	}
	_, body := w.ask(t, "alice", http.MethodGet, "/v1/queues", "")
	var seen query.QueuesAnswer
	if err := json.Unmarshal([]byte(body), &seen); err != nil {
		t.Fatal(err)
	}
	if len(seen.Queues) != 1 || seen.Queues[0].Name != "a" || !cmp.Equal(seen.Queues[0].Namespaces, []string{"a1"}) || seen.Queues[0].Submitters != nil {
		t.Errorf("queues %+v, want a with the namespace a1 alone, and no submitters", seen.Queues)
	}
}

// TestQueuesOfOneNameOverHTTP: each of them has its own quota, so the namespace must be given
// where the caller sees several, and no caller sees that of a namespace it may not use.
func TestQueuesOfOneNameOverHTTP(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		caller, path string
		status       int
		want         string
	}{
		"ambiguous":            {"carol", "/v1/queues/local", http.StatusBadRequest, `\"local\" is the name of queues in namespaces c1, c2; want ?namespace= with one of them`},
		"one of them":          {"carol", "/v1/queues/local?namespace=c2", http.StatusOK, `"clusterQueue":"of-c2"`},
		"the other one":        {"olga", "/v1/queues/local?namespace=c1", http.StatusOK, `"clusterQueue":"of-c1"`},
		"none":                 {"carol", "/v1/queues/local?namespace=a1", http.StatusNotFound, "there is no queue"},
		"the only visible one": {"dora", "/v1/queues/local", http.StatusOK, `"clusterQueue":"of-c2"`},
		"a hidden one":         {"dora", "/v1/queues/local?namespace=c1", http.StatusNotFound, "there is no queue"},
		"a bad namespace":      {"carol", "/v1/queues/local?namespace=" + strings.Repeat("c", 300), http.StatusBadRequest, "want the name of a namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer, body := newWorld(t, DefaultLimits()).ask(t, c.caller, http.MethodGet, c.path, "")
			if answer.StatusCode != c.status || !strings.Contains(body, c.want) {
				t.Errorf("%s is answered by %d %s; want %d and %s", c.path, answer.StatusCode, body, c.status, c.want)
			}
		})
	}
	_, body := newWorld(t, DefaultLimits()).ask(t, "dora", http.MethodGet, "/v1/queues", "")
	var seen query.QueuesAnswer
	if err := json.Unmarshal([]byte(body), &seen); err != nil || len(seen.Queues) != 1 || seen.Queues[0].ClusterQueue != "of-c2" || len(seen.ClusterQueues) > 0 {
		t.Errorf("dora is shown %s, %v; want the queue of c2 alone", body, err)
	}
}

// TestHoldsOverHTTP: what is held is the queue of one namespace, or all of a name that are meant.
func TestHoldsOverHTTP(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path   string
		status int
		want   []query.HoldRequest
	}{
		"ambiguous":       {"/v1/queues/local/hold", http.StatusBadRequest, nil},
		"a namespace":     {"/v1/queues/local/hold?namespace=c2&why=x", http.StatusOK, []query.HoldRequest{{Queue: "local", Namespace: "c2", By: "http/olga", Why: "x"}}},
		"all":             {"/v1/queues/local/hold?allNamespaces=true", http.StatusOK, []query.HoldRequest{{Queue: "local", By: "http/olga"}}},
		"not there":       {"/v1/queues/local/hold?namespace=a1", http.StatusNotFound, nil},
		"a ClusterQueue":  {"/v1/clusterqueues/b/hold?why=x", http.StatusOK, []query.HoldRequest{{ClusterQueue: "b", By: "http/olga", Why: "x"}}},
		"no ClusterQueue": {"/v1/clusterqueues/c/hold", http.StatusNotFound, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, DefaultLimits())
			answer, body := w.ask(t, "olga", http.MethodPut, c.path, "")
			if answer.StatusCode != c.status {
				t.Errorf("%s is answered by %d %s, want %d", c.path, answer.StatusCode, body, c.status)
			}
			if diff := cmp.Diff(c.want, w.holds); diff != "" {
				t.Errorf("holds:\n%s", diff)
			}
		})
	}
}
