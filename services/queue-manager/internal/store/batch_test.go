package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// TestAnErrorNamesItsStatement: Postgres does not say which statement of a batch it gave up.
func TestAnErrorNamesItsStatement(t *testing.T) {
	t.Parallel()
	l := open(t)
	version := l.version(t)
	l.term.End()
	timeouts := store.DefaultTimeouts()
	timeouts.Lock = 100 * time.Millisecond
	s, err := store.Open(t.Context(), l.service, timeouts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	term, err := s.Lead(t.Context(), "test", silence, func() {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(term.End)
	commit := func(version int64) error {
		_, err := s.Commit(t.Context(), state.Changes{Epoch: term.Epoch, Version: version, Nodes: []state.NodeRow{observed("m", resource.List{"cpu": 1})}})
		return err
	}
	if err := commit(version + 1); err != nil { // which prepares the statements
		t.Fatal(err)
	}
	locked, err := l.connect(t).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locked.Rollback(context.Background()) })
	if _, err := locked.Exec(t.Context(), `LOCK TABLE nodes IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	err = commit(version + 2)
	if err == nil || !strings.Contains(err.Error(), `statement "INSERT INTO nodes`) {
		t.Errorf("the error is %v; want one that names the statement on nodes", err)
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
