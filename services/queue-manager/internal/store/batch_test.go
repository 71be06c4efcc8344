package store_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/state"
)

// TestAnErrorNamesItsStatement: Postgres does not name the statement of a batch that failed.
func TestAnErrorNamesItsStatement(t *testing.T) {
	t.Parallel()
	l := open(t)
	changes := admitted(1, "big", 1, 1, 3001) // more CPU than is left
	changes.Epoch, changes.Version = l.term.Epoch, l.version(t)+1
	_, err := l.Commit(t.Context(), changes)
	if err == nil || !strings.Contains(err.Error(), `statement "WITH added AS ( INSERT INTO workloads`) {
		t.Errorf("the error is %v; want one that names the statement on workloads", err)
	}
}

// observed is a node of cluster c as it is reported.
func observed(name string, allocatable resource.List) state.NodeRow {
	return state.NodeRow{
		Node:    capacity.Node{Cluster: "c", Name: name, Ready: true, Allocatable: allocatable},
		Version: event.Version{Session: 1, Seq: 1}, Present: true,
	}
}

// TestEachNodeHasItsOwnResources: in a commit of many nodes a resource is zero on those that do
// not report it any more, and only there.
func TestEachNodeHasItsOwnResources(t *testing.T) {
	t.Parallel()
	const nodes = 50
	l := open(t)
	var first, then []state.NodeRow
	want := map[string]int64{}
	for i := range nodes {
		name := fmt.Sprintf("m%d", i)
		first = append(first, observed(name, resource.List{"cpu": 1000, "nvidia.com/gpu": 8}))
		if i%2 == 0 {
			then = append(then, observed(name, resource.List{"cpu": 2000}))
			want[name+" cpu"] = 2000
			continue
		}
		then = append(then, observed(name, resource.List{"nvidia.com/gpu": 4}))
		want[name+" nvidia.com/gpu"] = 4
	}
	l.commit(t, state.Changes{Nodes: first})
	l.commit(t, state.Changes{Nodes: then})
	rows, err := l.connect(t).Query(t.Context(), `SELECT node || ' ' || resource, allocatable FROM node_resources WHERE node LIKE 'm%' AND allocatable <> 0`)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	var name string
	var amount int64
	if _, err := pgx.ForEachRow(rows, []any{&name, &amount}, func() error { got[name] = amount; return nil }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("resources of the nodes (-want +got):\n%s", diff)
	}
}
