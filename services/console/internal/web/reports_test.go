package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	messages "muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// trialCluster is a manifest of a what-if.
const trialCluster = `apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: train, labels: {muster.dev/priority-class: high}}
spec:
  headGroupSpec:
    rayStartParams: {}
    template: {spec: {containers: [{name: ray, image: ray, resources: {limits: {cpu: 2}}}]}}
`

// TestReportsAreAskedAsWritten: the forms of reports ask the HTTP API for what they have, and
// refuse what is wrong themselves.
func TestReportsAreAskedAsWritten(t *testing.T) {
	t.Parallel()
	a := newAPI(2, 3)
	b := newBrowser(t, a, "olga", false)
	for path, want := range map[string]string{
		"/usage?since=soon": "want a time", "/usage?by=colour": "by &#34;colour&#34;", "/usage?price=x": "price &#34;x&#34;", "/whatif?drain=gpu-1": "want CLUSTER/NODE",
		"/whatif?workload=" + string(theID) + "&priority=high": "want a whole number", "/whatif?label=rack": "want a label with its value", "/whatif?like=a/b&count=x": "want a whole number",
		"/whatif?workload=" + string(theID) + "&pods=workers": "want POD SET=NUMBER", "/whatif?workload=" + string(theID) + "&requests=workers": "want POD SET:RESOURCE=AMOUNT", "/whatif?manifests=a:+b&to=q": "Manifests: ", "/whatif?runtime=soon&manifests=a:+b": "want a time such as 90m", "/decisions?before=x": "want EPOCH-NUMBER", "/decisions?workload=x": "want the id", "/?window=2h": "want 1h, 6h, 24h or 7d",
	} {
		t.Run(path, func(t *testing.T) {
			status, _, content := b.get(path)
			if form := strings.HasPrefix(path, "/whatif"); (status == http.StatusOK) != form || form && !strings.Contains(content, `aria-label="Change to try"`) || status >= 500 || !strings.Contains(content, want) {
				t.Errorf("status %d, want that it says %q, and that a form stays: %s", status, want, content)
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
	b.get("/whatif?to=research&namespace=team-a&runtime=6h&submitter=http/ann&manifests=" + url.QueryEscape(strings.ReplaceAll(trialCluster, "\n", "\r\n")))
	priority := int32(-3)
	want := []query.WhatIfRequest{{
		AddNodes: []query.NodesLike{{Like: query.NodeName{Cluster: "east", Name: "gpu-1"}, Count: 4}}, DrainAll: []query.NodeSet{{Cluster: "east", Label: "rack", Value: "r7"}},
		Workloads: []query.WorkloadChange{{ID: theID, Priority: &priority, Queue: "spare", Pods: []query.PodCount{{PodSet: "workers", Count: 8}}}},
	}, {
		AddNodes: []query.NodesLike{{Shape: &query.NodeShape{Cluster: "east", Allocatable: resource.List{"cpu": 2000, "nvidia.com/gpu": 8}, Labels: map[string]string{"pool": "a100"}}, Count: 3}},
	}, {
		Workloads: []query.WorkloadChange{{ID: theID, Requests: []query.PodRequests{{PodSet: "workers", Amounts: resource.List{"cpu": 2000, "nvidia.com/gpu": 4}}}}},
	}, {QueuesFile: "queues:\n- {name: research}\n"}, {Submit: []query.WhatIfSubmission{{PriorityClass: "high", Workload: workload.Workload{
		ID: messages.WorkloadID("whatif", "0"), Queue: "research", Namespace: "team-a", Kind: workload.KindRayCluster, Name: "train", Digest: "whatif", Submitter: "http/ann",
		Life: workload.Life{RunTime: workload.Duration(6 * time.Hour)}, PodSets: []workload.PodSet{{
			Name: "headgroup", Role: workload.RoleHead, Count: 1, Template: workload.Template{Requests: resource.List{"cpu": 2000, resource.Pods: 1}},
		}},
	}}}}}
	a.mu.Lock()
	defer a.mu.Unlock()
	if diff := cmp.Diff(want, a.tried, cmpopts.IgnoreFields(workload.Template{}, "Asks", "Unset")); diff != "" {
		t.Error(diff)
	}
	const asked = "by=queue%2Cday&namespace=n&price=cpu%3D0.5&queue=q&resource=cpu%2Cmemory&since=2026-01-01T00%3A00%3A00Z&until=2026-01-02T00%3A00%3A00Z"
	if len(a.reports) != 1 || a.reports[0].Encode() != asked {
		t.Errorf("usage was asked for as %v, want %s", a.reports, asked)
	}
}
