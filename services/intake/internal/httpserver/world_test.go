package httpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/httpapi"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/intake/internal/budget"
)

// The ids of workloads: of a tenant, of another one, and of none.
const (
	own     = workload.ID("6f2b5d1e-4f0a-5c1d-9d3e-000000000001")
	foreign = workload.ID("6f2b5d1e-4f0a-5c1d-9d3e-000000000002")
	unknown = workload.ID("6f2b5d1e-4f0a-5c1d-9d3e-000000000003")
)

// manager answers questions in the place of queue-manager, which is another process: alice
// may submit to queue a, bob to queue b.
type manager struct {
	mu       sync.Mutex
	listed   []query.WorkloadsRequest
	reports  []query.UsageRequest
	holds    []query.HoldRequest
	tried    []query.WhatIfRequest
	happened []query.ActivityRequest
	decided  []query.DecisionsRequest
	selected []query.NodesRequest
	more     []query.Queue // beside the usual ones
	saved    *workload.Saved
	problem  error // to every question but those about queues
}

// ofCarol is one of two LocalQueues of a name: carol may submit to both, dora to that of c2.
func ofCarol(namespace string) query.Queue {
	return query.Queue{Name: "local", Namespaces: []string{namespace}, ClusterQueue: "of-" + namespace, Submitters: []workload.Submitters{
		{Who: []string{"http/carol"}}, {Who: []string{"http/dora"}, Namespaces: []string{"c2"}},
	}}
}

func (m *manager) Ask(_ context.Context, subject string, request []byte) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if subject == query.QueuesSubject {
		a := query.Queue{Name: "a", Namespaces: []string{"a1", "a2"}, Submitters: []workload.Submitters{{Who: []string{"http/alice"}, Namespaces: []string{"a1"}}}}
		b := query.Queue{Name: "b", Namespaces: []string{"b1"}, Submitters: []workload.Submitters{{Who: []string{"http/bob"}}}}
		return json.Marshal(query.QueuesAnswer{
			Queues: append([]query.Queue{a, b, ofCarol("c1"), ofCarol("c2")}, m.more...), ClusterQueues: []query.ClusterQueue{{Name: "b"}}, Cohorts: []quota.CohortUsage{{Name: "company"}}, Flavors: []quota.Flavor{{Name: "h100"}},
			PriorityClasses: []quota.PriorityClass{{Name: "urgent"}},
		})
	}
	if m.problem != nil {
		return nil, m.problem
	}
	switch subject {
	case query.WorkloadsSubject:
		var asked query.WorkloadsRequest
		if err := json.Unmarshal(request, &asked); err != nil {
			return nil, err
		}
		m.listed = append(m.listed, asked)
		var answer query.WorkloadsAnswer
		for _, r := range []workload.Record{
			{Workload: workload.Workload{ID: own, Queue: "a", Namespace: "a1", Name: "own"}, Phase: workload.Running, Reason: &workload.Reason{Foreign: []workload.ID{foreign}}, Extra: &workload.Extra{LastSaved: m.saved}},
			{Workload: workload.Workload{ID: foreign, Queue: "b", Namespace: "b1", Name: "foreign"}, Phase: workload.Succeeded},
		} {
			if asked.ID == "" || asked.ID == r.ID {
				answer.Workloads = append(answer.Workloads, r)
			}
		}
		return json.Marshal(answer)
	case query.HoldSubject:
		var asked query.HoldRequest
		if err := json.Unmarshal(request, &asked); err != nil {
			return nil, err
		}
		m.holds = append(m.holds, asked)
		return []byte("{}"), nil
	case query.StatusSubject:
		return json.Marshal(query.StatusAnswer{Clusters: []query.ClusterStatus{{Name: "east", Nodes: 1}, {Name: "busy", Nodes: 1, Live: 1}, {Name: "gone", Cordon: &quota.ClusterCordon{Name: "gone", Drain: true, Left: true}}}})
	case query.UsageSubject:
		var asked query.UsageRequest
		if err := json.Unmarshal(request, &asked); err != nil {
			return nil, err
		}
		m.reports = append(m.reports, asked)
		return []byte(`{"rows": []}`), nil
	case query.DemandSubject:
		return []byte(`{"shapes": []}`), nil
	case query.WhatIfSubject:
		var asked query.WhatIfRequest
		if err := json.Unmarshal(request, &asked); err != nil {
			return nil, err
		}
		m.tried = append(m.tried, asked)
		if len(asked.Drain) > 0 {
			return nil, &query.ProblemError{Message: "there is no such node"}
		}
		return []byte(`{"version": 7}`), nil
	case query.ActivitySubject:
		var asked query.ActivityRequest
		if err := json.Unmarshal(request, &asked); err != nil {
			return nil, err
		}
		m.happened = append(m.happened, asked)
		return []byte("{}"), nil
	case query.DecisionsSubject:
		var asked query.DecisionsRequest
		if err := json.Unmarshal(request, &asked); err != nil {
			return nil, err
		}
		m.decided = append(m.decided, asked)
		return []byte("{}"), nil
	case query.ManifestSubject:
		return []byte(`{"manifest": {"kind": "RayJob"}, "masked": 2}`), nil
	case query.NodesSubject:
		var asked query.NodesRequest
		if err := json.Unmarshal(request, &asked); err != nil {
			return nil, err
		}
		m.selected = append(m.selected, asked)
		return []byte(`{"selected": true}`), nil
	case query.HistorySubject, query.ExplainSubject, query.AppliedSubject:
		return []byte("{}"), nil
	}
	return nil, fmt.Errorf("no answer to %s", subject)
}

// world is the API with callers whose token is their name.
type world struct {
	*manager
	url string
}

func newWorld(t *testing.T, limits Limits) *world {
	t.Helper()
	return newWorldOver(t, nil, limits)
}

// newWorldOver is newWorld with NATS.
func newWorldOver(t *testing.T, b *bus.Bus, limits Limits) *world {
	t.Helper()
	m := &manager{}
	server := httptest.NewServer(New(Options{
		Bus: b, Dead: dead{}, Queries: query.NewClientOver(m), Operator: ray.Shipped(), Operators: []string{"olga"}, Budget: budget.New(budget.Default()),
		Identify: func(r *http.Request) (string, time.Time, error) {
			if name := r.Header.Get("Authorization"); name != "" {
				return name, time.Time{}, nil
			}
			return "", time.Time{}, errors.New("unknown caller")
		},
		Limits: limits, Logger: zap.NewNop(),
	}))
	t.Cleanup(server.Close)
	return &world{m, server.URL}
}

// dead has one dead letter, and more that are older.
type dead struct{}

func (dead) LastDeadLetters(_ context.Context, most int, trim func(*bus.DeadLetter)) ([]bus.DeadLetter, int, error) {
	d := bus.DeadLetter{Subject: "muster.submit.b", Sequence: 7, Reason: "no manifest: data is \"pass\\\"word=letmein\", want an object", Message: "password=letmein", Size: 16}
	trim(&d)
	return []bus.DeadLetter{d}, most, nil
}

// ask sends a request of a caller and returns the answer with its body.
func (w *world) ask(t *testing.T, caller, method, path, body string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if caller != "" {
		r.Header.Set("Authorization", caller)
	}
	answer, err := (&http.Client{Timeout: time.Minute}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(content)
}

// refused checks that the answer is a Problem of this status whose text has these parts.
func refused(t *testing.T, answer *http.Response, body string, status int, parts ...string) {
	t.Helper()
	var problem httpapi.Problem
	if err := json.Unmarshal([]byte(body), &problem); err != nil || problem.Error == "" {
		t.Fatalf("the answer is %d, %q: no problem in JSON", answer.StatusCode, body)
	}
	if answer.StatusCode != status {
		t.Errorf("status %d (%s), want %d", answer.StatusCode, problem.Error, status)
	}
	for _, part := range parts {
		if !strings.Contains(problem.Error, part) {
			t.Errorf("the error is %q, want %q in it", problem.Error, part)
		}
	}
}
