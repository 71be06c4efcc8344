package httpserver

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
)

// TestWhatIfOverHTTP: operators try everything. Tenants try changes of their own workloads and
// submissions to their queues, and queue-manager is asked for what they may see.
func TestWhatIfOverHTTP(t *testing.T) {
	t.Parallel()
	mine := []query.Place{{Queue: "a", Namespaces: []string{"a1"}}}
	priority := int32(7)
	const nodes = `{"addNodes":[{"like":{"cluster":"east","name":"n"},"count":2}],"drainAll":[{"cluster":"east"}],"queuesFile":"queues: []"}`
	for name, c := range map[string]struct {
		caller, body string
		status       int
		message      string
		want         []query.WhatIfRequest
	}{
		"an operator": {"olga", nodes, http.StatusOK, `"version":7`, []query.WhatIfRequest{{
			AddNodes: []query.NodesLike{{Like: query.NodeName{Cluster: "east", Name: "n"}, Count: 2}}, DrainAll: []query.NodeSet{{Cluster: "east"}}, QueuesFile: "queues: []", For: "http/olga",
		}}},
		"what cannot be":       {"olga", `{"drain":[{"cluster":"c","name":"n"}]}`, http.StatusUnprocessableEntity, "there is no such node", []query.WhatIfRequest{{Drain: []query.NodeName{{Cluster: "c", Name: "n"}}, For: "http/olga"}}},
		"a tenant's workload":  {"alice", fmt.Sprintf(`{"workloads":[{"id":%q,"priority":7}]}`, own), http.StatusOK, `"version":7`, []query.WhatIfRequest{{Workloads: []query.WorkloadChange{{ID: own, Priority: &priority}}, Within: mine, For: "http/alice"}}},
		"a claim of places":    {"alice", fmt.Sprintf(`{"workloads":[{"id":%q,"queue":"a"}],"within":[{"queue":"b"}],"for":"http/olga"}`, own), http.StatusOK, `"version":7`, []query.WhatIfRequest{{Workloads: []query.WorkloadChange{{ID: own, Queue: "a"}}, Within: mine, For: "http/alice"}}},
		"a submission":         {"alice", `{"submit":[{"id":"x","queue":"a","namespace":"a1","name":"n","podSets":null}]}`, http.StatusOK, `"version":7`, []query.WhatIfRequest{{Submit: []query.WhatIfSubmission{{Workload: workload.Workload{ID: "x", Queue: "a", Namespace: "a1", Name: "n", Submitter: "http/alice"}}}, Within: mine, For: "http/alice"}}},
		"of another's name":    {"alice", `{"submit":[{"id":"x","queue":"a","name":"n","podSets":null,"submitter":"http/bob","priorityClass":"high"}]}`, http.StatusOK, `"version":7`, []query.WhatIfRequest{{Submit: []query.WhatIfSubmission{{Workload: workload.Workload{ID: "x", Queue: "a", Name: "n", Submitter: "http/alice"}, PriorityClass: "high"}}, Within: mine, For: "http/alice"}}},
		"another's workload":   {"alice", fmt.Sprintf(`{"workloads":[{"id":%q,"priority":7}]}`, foreign), http.StatusNotFound, "there is no workload", nil},
		"another's queue":      {"alice", fmt.Sprintf(`{"workloads":[{"id":%q,"queue":"b"}]}`, own), http.StatusNotFound, `no queue \"b\"`, nil},
		"a foreign submission": {"alice", `{"submit":[{"id":"x","queue":"b","namespace":"b1","name":"n"}]}`, http.StatusNotFound, `no queue \"b\"`, nil},
		"nodes of a tenant":    {"alice", nodes, http.StatusForbidden, "only an operator", nil},
		"without a queue":      {"mallory", `{}`, http.StatusForbidden, "you may submit to no queue", nil},
		"another field":        {"olga", `{"drian":[]}`, http.StatusUnprocessableEntity, "drian", nil},
		"no JSON":              {"olga", `x`, http.StatusUnprocessableEntity, "not the JSON of a change", nil},
		"too much":             {"olga", `{"queuesFile":"` + strings.Repeat("#", longestWhatIf) + `"}`, http.StatusUnprocessableEntity, "too large", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, DefaultLimits())
			answer, body := w.ask(t, c.caller, http.MethodPost, "/v1/whatif", c.body)
			if answer.StatusCode != c.status || !strings.Contains(body, c.message) {
				t.Errorf("status %d: %s; want %d and %q", answer.StatusCode, body, c.status, c.message)
			}
			if diff := cmp.Diff(c.want, w.tried); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestActivityOverHTTP: queue-manager is asked for what the caller may see, and for nothing when
// that is nothing.
func TestActivityOverHTTP(t *testing.T) {
	t.Parallel()
	since := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	path := "/v1/activity?step=60&since=" + since.Format(time.RFC3339)
	for name, c := range map[string]struct {
		caller, path string
		status       int
		want         []query.ActivityRequest
	}{
		"an operator":     {"olga", path + "&queue=b", http.StatusOK, []query.ActivityRequest{{Since: since, StepSeconds: 60, Queue: "b"}}},
		"a tenant":        {"alice", path, http.StatusOK, []query.ActivityRequest{{Since: since, StepSeconds: 60, Within: []query.Place{{Queue: "a", Namespaces: []string{"a1"}}}}}},
		"another's queue": {"alice", path + "&queue=b", http.StatusOK, nil},
		"no time":         {"olga", "/v1/activity?step=60", http.StatusBadRequest, nil},
		"no step":         {"olga", "/v1/activity?since=" + since.Format(time.RFC3339), http.StatusBadRequest, nil},
		"too many steps":  {"olga", strings.Replace(path, "step=60", "step=1", 1), http.StatusBadRequest, nil},
		"a bad queue":     {"olga", path + "&queue=a%0ab", http.StatusBadRequest, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, DefaultLimits())
			if answer, body := w.ask(t, c.caller, http.MethodGet, c.path, ""); answer.StatusCode != c.status {
				t.Errorf("status %d: %s; want %d", answer.StatusCode, body, c.status)
			}
			if diff := cmp.Diff(c.want, w.happened); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestDecisionsOverHTTP: operators alone list decisions.
func TestDecisionsOverHTTP(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	for name, c := range map[string]struct {
		caller, parameters string
		status             int
		want               []query.DecisionsRequest
	}{
		"an operator": {"olga", "?until=2026-03-04T05:06:07Z&before=7-12&limit=3", http.StatusOK, []query.DecisionsRequest{{Until: at, Before: &query.DecisionKey{Epoch: 7, Number: 12}, Limit: 3}}},
		"the last":    {"olga", "", http.StatusOK, []query.DecisionsRequest{{}}},
		"a tenant":    {"alice", "", http.StatusForbidden, nil},
		"no key":      {"olga", "?before=12", http.StatusBadRequest, nil},
		"no time":     {"olga", "?until=now", http.StatusBadRequest, nil},
		"too many":    {"olga", "?limit=51", http.StatusBadRequest, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, DefaultLimits())
			if answer, body := w.ask(t, c.caller, http.MethodGet, "/v1/decisions"+c.parameters, ""); answer.StatusCode != c.status {
				t.Errorf("status %d: %s; want %d", answer.StatusCode, body, c.status)
			}
			if diff := cmp.Diff(c.want, w.decided); diff != "" {
				t.Error(diff)
			}
		})
	}
}
