package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/state"
)

// TestOrderByBytes: names come in the order of their bytes, which readers rely on, whatever the
// collation of the database. Most collations of a language pass over punctuation.
func TestOrderByBytes(t *testing.T) {
	t.Parallel()
	url := testServer.Database(t)
	collate(t, url, "nodes.cluster", "nodes.name", "node_resources.cluster", "node_resources.node", "queues.name")
	l := openAt(t, url)
	want := []string{"a-2", "a-3", "a1", "n"}
	var nodes []state.NodeRow
	var queues []state.Queue
	for i, name := range []string{"a1", "a-2", "a-3"} {
		nodes = append(nodes, state.NodeRow{
			Node: capacity.Node{Cluster: "c", Name: name, Ready: true, Allocatable: resource.List{"cpu": 4000}}, Version: event.Version{Session: 1, Seq: uint64(i + 2)}, Present: true,
		})
		queues = append(queues, state.Queue{Name: name, Namespaces: []string{"ns"}, Strategy: quota.BestEffortFIFO})
	}
	l.commit(t, state.Changes{Nodes: nodes})
	if err := l.SetQueues(t.Context(), l.term.Epoch, append(queues, state.Queue{Name: "n", Namespaces: []string{"ns"}, Strategy: quota.BestEffortFIFO}), quota.Config{}); err != nil {
		t.Fatal(err)
	}
	answer, err := l.Nodes(t.Context(), query.NodesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range answer.Nodes {
		got = append(got, n.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("nodes: %q, want %q", got, want)
	}
	settings, err := l.Settings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got = nil
	for _, q := range settings.Queues {
		got = append(got, q.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("queues: %q, want %q", got, want)
	}
}

// collate gives columns a collation that passes over punctuation.
func collate(t *testing.T, url string, columns ...string) {
	t.Helper()
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context())
	if _, err := db.Exec(t.Context(), `CREATE COLLATION passing (provider = icu, locale = 'en-u-ka-shifted')`); err != nil {
		t.Skipf("this Postgres has no collations of ICU: %v", err)
	}
	for _, column := range columns {
		table, name, _ := strings.Cut(column, ".")
		if _, err := db.Exec(t.Context(), fmt.Sprintf(`ALTER TABLE %s ALTER COLUMN %s TYPE text COLLATE passing`, table, name)); err != nil {
			t.Fatal(err)
		}
	}
}
