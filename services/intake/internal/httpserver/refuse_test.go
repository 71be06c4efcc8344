package httpserver

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
)

// TestBadInput: what a request must not have is refused with the value and what would be
// right, before queue-manager is asked.
func TestBadInput(t *testing.T) {
	t.Parallel()
	mine := "/v1/workloads/" + string(own)
	for name, c := range map[string]struct {
		caller, method, path, body string
		status                     int
		parts                      []string
	}{
		"no caller":           {"", http.MethodGet, "/v1/queues", "", 401, []string{"unknown caller"}},
		"a path":              {"alice", http.MethodGet, "/v2/queues", "", 404, []string{`"/v2/queues"`, "GET /openapi.json"}},
		"a method":            {"alice", http.MethodPatch, "/v1/queues", "", 405, []string{`"PATCH"`, "want GET"}},
		"a parameter":         {"alice", http.MethodGet, "/v1/workloads?fase=running", "", 400, []string{`"fase"`, "want ", "phase"}},
		"no parameter at all": {"alice", http.MethodGet, "/v1/queues?x=1", "", 400, []string{"want none"}},
		"a phase":             {"alice", http.MethodGet, "/v1/workloads?phase=queued,done", "", 400, []string{`"done"`, "running"}},
		"a page of none":      {"alice", http.MethodGet, "/v1/workloads?limit=0", "", 400, []string{`"0"`, fmt.Sprint(query.MaxPage)}},
		"a page too large":    {"alice", http.MethodGet, fmt.Sprint("/v1/workloads?limit=", query.MaxPage+1), "", 400, []string{fmt.Sprint(query.MaxPage + 1)}},
		"a label selector":    {"alice", http.MethodGet, "/v1/workloads?labelSelector=gpus%3E4", "", 400, []string{"labelSelector", `"gpus"`, "want ="}},
		"an order":            {"alice", http.MethodGet, "/v1/workloads?order=size&phase=queued", "", 400, []string{`"size"`, "want position"}},
		"a running order":     {"alice", http.MethodGet, "/v1/workloads?order=position&phase=queued,running", "", 400, []string{"want phase queued alone"}},
		"a limit in words":    {"alice", http.MethodGet, "/v1/workloads?limit=ten", "", 400, []string{`"ten"`}},
		"a page after no id":  {"alice", http.MethodGet, "/v1/workloads?after=3", "", 400, []string{`"3"`}},
		"a page after a foreign workload": {
			"alice", http.MethodGet, "/v1/workloads?after=" + string(foreign), "", 400, []string{"begin again with the first page"},
		},
		"a name of two lines":      {"alice", http.MethodGet, "/v1/workloads?name=a%0ab", "", 400, []string{"name", `"a\nb"`}},
		"a name too long":          {"alice", http.MethodGet, "/v1/workloads?name=" + strings.Repeat("n", longestName+1), "", 400, []string{fmt.Sprint(longestName)}},
		"an id":                    {"alice", http.MethodGet, "/v1/workloads/own", "", 404, []string{`"own"`, "UUID"}},
		"no time of events":        {"alice", http.MethodGet, mine + "/events?since=1h", "", 400, []string{`since "1h"`, "2026-01-02T15:04:05Z"}},
		"events to follow":         {"alice", http.MethodGet, "/v1/queues/a/events?follow=no", "", 400, []string{`follow "no"`, "true or false"}},
		"a certificate":            {"alice", http.MethodGet, mine + "/explanation?certificate=1", "", 400, []string{`"1"`, "true or false"}},
		"a reason too long":        {"alice", http.MethodDelete, mine + "?why=" + strings.Repeat("w", longestWhy+1), "", 400, []string{fmt.Sprint(longestWhy)}},
		"a reason with escape":     {"alice", http.MethodDelete, mine + "?why=%1b%5b2J", "", 400, []string{"printable"}},
		"no queue to move to":      {"alice", http.MethodPost, mine + "/move", "", 404, []string{`no queue ""`, "namespace a1"}},
		"a foreign queue":          {"alice", http.MethodPost, mine + "/move?queue=b", "", 404, []string{`no queue "b"`}},
		"a running workload":       {"alice", http.MethodPost, mine + "/move?queue=a", "", 409, []string{"is running", "only a waiting workload can be moved"}},
		"a hold of what runs":      {"alice", http.MethodPut, mine + "/hold", "", 409, []string{"is running", "only a waiting workload can be held", "requeue"}},
		"nothing to resume":        {"alice", http.MethodDelete, mine + "/hold", "", 409, []string{"is not held"}},
		"a requeue at the end":     {"bob", http.MethodPost, "/v1/workloads/" + string(foreign) + "/requeue", "", 409, []string{"is succeeded", "only one that was admitted"}},
		"a checkpoint at the end":  {"bob", http.MethodPut, "/v1/workloads/" + string(foreign) + "/checkpoint", "", 409, []string{"is succeeded", "only one that runs"}},
		"no time of a checkpoint":  {"alice", http.MethodPut, mine + "/checkpoint?at=1h", "", 400, []string{`at "1h"`, "2026-01-02T15:04:05Z"}},
		"a checkpoint of long ago": {"alice", http.MethodPut, mine + "/checkpoint?at=0001-01-01T00:00:00Z", "", 409, []string{"was admitted at", "is not after that"}},
		"no priority to set":       {"olga", http.MethodPut, mine + "/priority", "", 400, []string{`value ""`, "whole number"}},
		"33 bits of priority":      {"olga", http.MethodPut, mine + "/priority?value=2147483648", "", 400, []string{"2147483648", "2147483647"}},
		"a hold's reason, too":     {"alice", http.MethodPut, mine + "/hold?why=a%0ab", "", 400, []string{"why", "printable"}},
		"an ended workload":        {"bob", http.MethodGet, "/v1/workloads/" + string(foreign) + "/explanation", "", 404, []string{"has ended, as succeeded"}},
		"a hold's reason":          {"olga", http.MethodPut, "/v1/queues/a/hold?why=a%0ab", "", 400, []string{"why", "printable"}},
		"a hold of no queue":       {"olga", http.MethodPut, "/v1/queues/c/hold", "", 404, []string{`no queue "c"`}},
		"a submission to no name": {
			"alice", http.MethodPost, "/v1/queues/A_b/workloads", "{}", 400, []string{`"A_b"`, "lower-case"},
		},
		"an empty submission": {"alice", http.MethodPost, "/v1/queues/a/workloads", "", 422, []string{"the body is empty"}},
		"a submission too large": {
			"alice", http.MethodPost, "/v1/queues/a/workloads", strings.Repeat(" ", event.MaxSubmission+1), 413, []string{fmt.Sprint(event.MaxSubmission), "ConfigMap"},
		},
		"a priority in words": {"alice", http.MethodPost, "/v1/queues/a/workloads?priority=high", "{}", 422, []string{`"high"`, "whole number"}},
		"a priority of 33 bits": {
			"alice", http.MethodPost, "/v1/queues/a/workloads?priority=2147483648", "{}", 422, []string{`"2147483648"`},
		},
		"another kind": {
			"alice", http.MethodPost, "/v1/queues/a/workloads", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`, 422, []string{"Pod"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, DefaultLimits())
			answer, body := w.ask(t, c.caller, c.method, c.path, c.body)
			refused(t, answer, body, c.status, c.parts...)
			if got := answer.Header.Get("Allow"); (c.status == http.StatusMethodNotAllowed) != (got != "") {
				t.Errorf("header Allow is %q", got)
			}
			if got := answer.Header.Get("WWW-Authenticate"); (c.status == http.StatusUnauthorized) != (got != "") {
				t.Errorf("header WWW-Authenticate is %q", got)
			}
			if len(w.holds) > 0 {
				t.Errorf("queue-manager got %+v", w.holds)
			}
		})
	}
}

// TestQueueManagerCannotAnswer: the caller learns whether to try again.
func TestQueueManagerCannotAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		problem error
		status  int
		retry   string
	}{
		"none answers":     {fmt.Errorf("ask: %w", query.ErrNoAnswer), http.StatusServiceUnavailable, "5"},
		"it has too much":  {query.Busy("16 explanations are being made"), http.StatusTooManyRequests, "5"},
		"for a known time": {query.BusyFor("your what-ifs have taken 20s", 33*time.Second), http.StatusTooManyRequests, "33"},
		"it fails":         {&query.ProblemError{Message: "read the ledger: connection refused"}, http.StatusServiceUnavailable, "5"},
		"intake fails":     {fmt.Errorf("a defect"), http.StatusInternalServerError, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, DefaultLimits())
			w.problem = c.problem
			answer, body := w.ask(t, "alice", http.MethodGet, "/v1/workloads", "")
			refused(t, answer, body, c.status)
			if got := answer.Header.Get("Retry-After"); got != c.retry {
				t.Errorf("header Retry-After is %q, want %q", got, c.retry)
			}
		})
	}
}
