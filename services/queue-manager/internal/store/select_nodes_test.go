package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// TestNodesAreSelected: each part of a request selects, and pages follow each other.
func TestNodesAreSelected(t *testing.T) {
	t.Parallel()
	l := open(t) // has node n of cluster c
	var rows []state.NodeRow
	for i := range 6 {
		n := capacity.Node{Cluster: "d", Name: fmt.Sprintf("gpu-%d", i), Ready: i != 3, Cordoned: i == 1, Allocatable: resource.List{"cpu": 1000}}
		if i == 2 {
			n.Taints = []capacity.Taint{{Key: capacity.DrainTaint, Effect: "NoSchedule"}}
		}
		if i == 4 {
			n.Name = "head-4"
		}
		rows = append(rows, state.NodeRow{Node: n, Version: event.Version{Session: 1, Seq: uint64(i + 2)}, Present: i != 5})
	}
	l.commit(t, state.Changes{Nodes: rows})
	for name, c := range map[string]struct {
		r     query.NodesRequest
		want  []string
		next  query.NodeName
		count int
	}{
		"all":                  {query.NodesRequest{}, []string{"n", "gpu-0", "gpu-1", "gpu-2", "gpu-3", "head-4"}, query.NodeName{}, 0},
		"the first page":       {query.NodesRequest{Limit: 2}, []string{"n", "gpu-0"}, query.NodeName{Cluster: "d", Name: "gpu-1"}, 6},
		"the last page":        {query.NodesRequest{Limit: 3, From: query.NodeName{Cluster: "d", Name: "gpu-2"}}, []string{"gpu-2", "gpu-3", "head-4"}, query.NodeName{}, 6},
		"from where none is":   {query.NodesRequest{Limit: 1, From: query.NodeName{Cluster: "d", Name: "gpu-22"}}, []string{"gpu-3"}, query.NodeName{Cluster: "d", Name: "head-4"}, 6},
		"of a cluster":         {query.NodesRequest{Cluster: "c", Limit: 9}, []string{"n"}, query.NodeName{}, 1},
		"of a beginning":       {query.NodesRequest{Prefix: "gpu-", Limit: 9}, []string{"gpu-0", "gpu-1", "gpu-2", "gpu-3"}, query.NodeName{}, 4},
		"no pattern":           {query.NodesRequest{Prefix: "gpu_"}, nil, query.NodeName{}, 0},
		"one":                  {query.NodesRequest{Cluster: "d", Name: "gpu-1"}, []string{"gpu-1"}, query.NodeName{}, 0},
		"ready":                {query.NodesRequest{State: query.NodeReady, Limit: 9}, []string{"n", "gpu-0", "head-4"}, query.NodeName{}, 3},
		"closed":               {query.NodesRequest{State: query.NodeClosed, Limit: 9}, []string{"gpu-1", "gpu-2"}, query.NodeName{}, 2},
		"broken":               {query.NodesRequest{State: query.NodeBroken, Limit: 9}, []string{"gpu-3"}, query.NodeName{}, 1},
		"ready of a beginning": {query.NodesRequest{State: query.NodeReady, Prefix: "gpu-", Cluster: "d", Limit: 9}, []string{"gpu-0"}, query.NodeName{}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := l.Nodes(t.Context(), c.r)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, n := range answer.Nodes {
				names = append(names, n.Name)
			}
			if diff := cmp.Diff(c.want, names); diff != "" || !answer.Selected || answer.Next != c.next || answer.Count != c.count {
				t.Errorf("next %v, want %v; count %d, want %d; names (-want +got):\n%s", answer.Next, c.next, answer.Count, c.count, diff)
			}
			if c.count > 0 && answer.InAll != 6 {
				t.Errorf("there are %d in all, want 6", answer.InAll)
			}
		})
	}
	for name, r := range map[string]query.NodesRequest{"no state": {State: "odd"}, "too many": {Limit: query.MaxPage + 1}} {
		t.Run(name, func(t *testing.T) {
			if _, err := l.Nodes(t.Context(), r); err == nil {
				t.Error("it is not refused")
			}
		})
	}
}

// TestWhoHoldsANode: the answer has each pod set with places on a node, the first admitted first,
// and until when it holds them by what it declares.
func TestWhoHoldsANode(t *testing.T) {
	t.Parallel()
	l := open(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, name := range []string{"first", "second"} {
		changes := admitted(int64(i+1), name, 2, 2, 100)
		r := &changes.Added[0].Record
		r.Times.Admitted = at.Add(time.Duration(i) * time.Hour)
		if name == "second" {
			r.Life.RunTime = workload.Duration(3 * time.Hour)
		}
		l.commit(t, changes)
	}
	answer, err := l.Nodes(t.Context(), query.NodesRequest{Holders: true})
	if err != nil || len(answer.Nodes) != 1 {
		t.Fatalf("%+v, %v", answer, err)
	}
	holder := func(name string, since time.Time, until workload.End) query.Holder {
		return query.Holder{ID: event.WorkloadID("test", name), Namespace: "ns", Name: name, Queue: "q", Phase: workload.Admitted, PodSet: "workers", Pods: 2, Since: since, Until: until}
	}
	want := []query.Holder{
		holder("first", at, workload.End{}),
		holder("second", at.Add(time.Hour), workload.End{At: at.Add(4 * time.Hour), By: workload.EndDeclared}),
	}
	if diff := cmp.Diff(want, answer.Nodes[0].Holders); diff != "" {
		t.Errorf("holders (-want +got):\n%s", diff)
	}
	if answer.Nodes[0].Reserved["cpu"] != 400 || answer.Nodes[0].Free["cpu"] != 2600 {
		t.Errorf("reserved %v, free %v", answer.Nodes[0].Reserved, answer.Nodes[0].Free)
	}
	if without, err := l.Nodes(t.Context(), query.NodesRequest{}); err != nil || without.Nodes[0].Holders != nil {
		t.Errorf("without a question for holders: %+v, %v", without, err)
	}
}
