package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
)

// TestReportsAreAskedAsWritten: the forms of reports ask the HTTP API for what they have, and
// refuse what is wrong themselves.
func TestReportsAreAskedAsWritten(t *testing.T) {
	t.Parallel()
	a := newAPI(2, 3)
	b := newBrowser(t, a, "olga", false)
	for path, want := range map[string]string{
		"/usage?since=soon": "want a time", "/usage?by=colour": "by &#34;colour&#34;", "/usage?price=x": "price &#34;x&#34;", "/whatif?drain=gpu-1": "want CLUSTER/NODE",
		"/whatif?workload=" + string(theID) + "&priority=high": "want a whole number", "/whatif?label=rack": "want a label with its value", "/whatif?like=a/b&count=x": "want a whole number",
		"/whatif?workload=" + string(theID) + "&pods=workers": "want POD SET=NUMBER", "/whatif?workload=" + string(theID) + "&requests=workers": "want POD SET:RESOURCE=AMOUNT", "/decisions?before=x": "want EPOCH-NUMBER", "/decisions?workload=x": "want the id", "/?window=2h": "want 1h, 6h, 24h or 7d",
	} {
		t.Run(path, func(t *testing.T) {
			if status, _, content := b.get(path); status != http.StatusBadRequest && status != http.StatusNotFound || !strings.Contains(content, want) {
				t.Errorf("status %d, want that it says %q: %s", status, want, content)
			}
		})
	}
	if status, _, content := b.get("/whatif?drain=east/gone"); status != http.StatusOK || !strings.Contains(content, "there is no such node") {
		t.Errorf("a refused change: status %d: %s", status, content)
	}
	b.get("/usage?since=2026-01-01&until=2026-01-02&by=queue,day&queue=q&namespace=n&resource=cpu,memory&price=cpu=0.5")
	b.get("/whatif?cluster=east&label=rack=r7&like=east/gpu-1&count=4&workload=" + string(theID) + "&priority=-3&queue=spare&pods=workers=8")
	b.get("/whatif?shape=east:cpu=2,nvidia.com/gpu=8&shapelabels=pool=a100&count=3")
	b.get("/whatif?workload=" + string(theID) + "&requests=workers:cpu=2,nvidia.com/gpu=4")
	b.get("/whatif?queues=queues:%0D%0A-+{name:+research}%0D%0A")
	priority := int32(-3)
	want := []query.WhatIfRequest{{
		AddNodes: []query.NodesLike{{Like: query.NodeName{Cluster: "east", Name: "gpu-1"}, Count: 4}}, DrainAll: []query.NodeSet{{Cluster: "east", Label: "rack", Value: "r7"}},
		Workloads: []query.WorkloadChange{{ID: theID, Priority: &priority, Queue: "spare", Pods: []query.PodCount{{PodSet: "workers", Count: 8}}}},
	}, {
		AddNodes: []query.NodesLike{{Shape: &query.NodeShape{Cluster: "east", Allocatable: resource.List{"cpu": 2000, "nvidia.com/gpu": 8}, Labels: map[string]string{"pool": "a100"}}, Count: 3}},
	}, {
		Workloads: []query.WorkloadChange{{ID: theID, Requests: []query.PodRequests{{PodSet: "workers", Amounts: resource.List{"cpu": 2000, "nvidia.com/gpu": 4}}}}},
	}, {QueuesFile: "queues:\n- {name: research}\n"}}
	a.mu.Lock()
	defer a.mu.Unlock()
	if diff := cmp.Diff(want, a.tried); diff != "" {
		t.Error(diff)
	}
	const asked = "by=queue%2Cday&namespace=n&price=cpu%3D0.5&queue=q&resource=cpu%2Cmemory&since=2026-01-01T00%3A00%3A00Z&until=2026-01-02T00%3A00%3A00Z"
	if len(a.reports) != 1 || a.reports[0].Encode() != asked {
		t.Errorf("usage was asked for as %v, want %s", a.reports, asked)
	}
}
