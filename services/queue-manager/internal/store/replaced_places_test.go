package store_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// node commits a node with the given millicores.
func (l ledger) node(t *testing.T, name string, cpu int64) {
	t.Helper()
	l.commit(t, state.Changes{Nodes: []state.NodeRow{{
		Node:    capacity.Node{Cluster: "c", Name: name, Ready: true, Allocatable: resource.List{"cpu": cpu, "pods": 10}},
		Version: event.Version{Session: 1, Seq: 1}, Present: true,
	}}})
}

// place puts a number of pods of a set on a node.
type place struct {
	set, node string
	pods      int
}

// replaced are the changes that give an admitted gang these places.
func replaced(of state.Changes, places ...place) state.Changes {
	changes := state.Changes{Updated: []workload.Record{of.Added[0].Record}}
	for _, p := range places {
		r := of.Reserved[0]
		r.PodSet, r.Node, r.Pods = p.set, p.node, p.pods
		changes.Replaced = append(changes.Replaced, r)
	}
	return changes
}

// A gang's places move in one transaction: the ledger follows to the pod, no node
// gets more than it has, and a gang never has fewer places than pods.
func TestPlacesAreReplaced(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.commit(t, state.Changes{Nodes: []state.NodeRow{{
		Node:    capacity.Node{Cluster: "c", Name: "m", Ready: true, Allocatable: resource.List{"cpu": 2000, "pods": 10}},
		Version: event.Version{Session: 1, Seq: 1}, Present: true,
	}}})
	changes := admitted(1, "gang", 3, 3, 1000)
	l.commit(t, changes)
	record := changes.Added[0].Record
	move := func(places map[string]int) error {
		replaced := state.Changes{Epoch: l.term.Epoch, Version: l.version(t) + 1, Updated: []workload.Record{record}}
		for node, pods := range places {
			r := changes.Reserved[0]
			r.Node, r.Pods = node, pods
			replaced.Replaced = append(replaced.Replaced, r)
		}
		_, err := l.Commit(t.Context(), replaced)
		return err
	}
	for _, places := range []map[string]int{{"n": 1, "m": 2}, {"n": 2, "m": 1}, {"n": 3}, {"n": 1, "m": 2}} {
		if err := move(places); err != nil {
			t.Fatalf("move to %v: %v", places, err)
		}
		for node, reserved := range l.reservedByNode(t) {
			if reserved != int64(places[node])*1000 {
				t.Errorf("after the move to %v node %s has %d reserved", places, node, reserved)
			}
		}
	}
	var refused *pgconn.PgError
	if err := move(map[string]int{"m": 3}); !errors.As(err, &refused) || refused.ConstraintName != "no_overcommit" {
		t.Errorf("a move onto a node without room: %v", err)
	}
	if err := move(map[string]int{"n": 2}); !errors.As(err, &refused) || refused.ConstraintName != "all_or_nothing" {
		t.Errorf("a move that leaves a pod out: %v", err)
	}
	// Node n loses its CPUs: what is there may go, but not grow.
	l.commit(t, state.Changes{Nodes: []state.NodeRow{{
		Node:    capacity.Node{Cluster: "c", Name: "n", Ready: true, Allocatable: resource.List{"cpu": 0, "pods": 10}},
		Version: event.Version{Session: 1, Seq: 2}, Present: true,
	}}})
	if err := move(map[string]int{"n": 2, "m": 1}); !errors.As(err, &refused) || refused.ConstraintName != "no_overcommit" {
		t.Errorf("a move onto a node that has shrunk: %v", err)
	}
}

func (l ledger) reservedByNode(t *testing.T) map[string]int64 {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), l.url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	rows, err := conn.Query(t.Context(), `SELECT node, reserved FROM node_resources WHERE resource = 'cpu'`)
	if err != nil {
		t.Fatal(err)
	}
	byNode := map[string]int64{}
	var node string
	var reserved int64
	if _, err := pgx.ForEachRow(rows, []any{&node, &reserved}, func() error { byNode[node] = reserved; return nil }); err != nil {
		t.Fatal(err)
	}
	return byNode
}

// Whatever gangs exchange in one commit is judged by what it comes to: nodes and
// quota that are full to the last pod refuse no replacement that leaves them as full.
func TestPlacesAreReplacedWhereEverythingIsFull(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		left, right []place // before
		change      func(left, right state.Changes) state.Changes
		want        map[string]int64
	}{
		"a drained node": {
			[]place{{"workers", "a", 2}}, []place{{"workers", "b", 2}},
			func(left, _ state.Changes) state.Changes { return replaced(left, place{"workers", "spare", 2}) },
			map[string]int64{"a": 0, "b": 2000, "spare": 2000},
		},
		"one of two pods": {
			[]place{{"workers", "a", 2}}, []place{{"workers", "b", 2}},
			func(left, _ state.Changes) state.Changes {
				return replaced(left, place{"workers", "a", 1}, place{"workers", "spare", 1})
			},
			map[string]int64{"a": 1000, "b": 2000, "spare": 1000},
		},
		"two gangs swap nodes": {
			[]place{{"workers", "a", 2}}, []place{{"workers", "b", 2}},
			func(left, right state.Changes) state.Changes {
				return both(replaced(left, place{"workers", "b", 2}), replaced(right, place{"workers", "a", 2}))
			},
			map[string]int64{"a": 2000, "b": 2000, "spare": 0},
		},
		"a gang exchanges the places of its pod sets": {
			[]place{{"head", "a", 1}, {"workers", "b", 1}}, []place{{"workers", "a", 1}, {"head", "b", 1}},
			func(left, _ state.Changes) state.Changes {
				return replaced(left, place{"head", "b", 1}, place{"workers", "a", 1})
			},
			map[string]int64{"a": 2000, "b": 2000, "spare": 0},
		},
		"one ends, another starts, a third moves": {
			[]place{{"workers", "a", 2}}, []place{{"workers", "b", 2}},
			func(left, right state.Changes) state.Changes {
				ended := left.Added[0].Record
				ended.Phase, ended.Holding = workload.Failed, false
				changes := replaced(right, place{"workers", "a", 2})
				next := charged(3, "next", 2, 1000)
				next.Reserved[0].Node = "b"
				changes.Freed, changes.Updated = []workload.ID{ended.ID}, append(changes.Updated, ended)
				changes.Added, changes.Reserved = next.Added, next.Reserved
				return changes
			},
			map[string]int64{"a": 2000, "b": 2000, "spare": 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := open(t)
			l.withQuota(t, "3") // and one of the cohort: four pods fill it
			for _, node := range []string{"a", "b", "spare"} {
				l.node(t, node, 2000)
			}
			left, right := gangOn(1, "left", c.left), gangOn(2, "right", c.right)
			l.commit(t, left)
			l.commit(t, right)
			l.commit(t, c.change(left, right))
			got := l.reservedByNode(t)
			for node, want := range c.want {
				if got[node] != want {
					t.Errorf("node %s has %d reserved, want %d", node, got[node], want)
				}
			}
			if used := l.used(t)["cohort all"]; used != [2]int64{4000, 4000} {
				t.Errorf("used and bound are %v, want a full quota", used)
			}
		})
	}
}

// gangOn is the admission of a gang of pods of one CPU, charged to quota.
func gangOn(order int64, name string, places []place) state.Changes {
	changes := charged(order, name, 1, 1000)
	row, record := changes.Reserved[0], &changes.Added[0].Record
	set := record.PodSets[0]
	changes.Reserved, record.PodSets = nil, nil
	for _, p := range places {
		row.PodSet, row.Node, row.Pods = p.set, p.node, p.pods
		changes.Reserved = append(changes.Reserved, row)
		set.Name, set.Count = p.set, p.pods
		record.PodSets = append(record.PodSets, set)
	}
	return changes
}

// A node that shrank and quota that was lowered below what is used keep what they
// have: a gang may get other places as long as neither gets more than it had.
func TestPlacesAreReplacedBelowWhatWasTakenAway(t *testing.T) {
	t.Parallel()
	l := open(t)
	l.withQuota(t, "3")
	l.node(t, "a", 3000)
	l.node(t, "b", 1000)
	gang := gangOn(1, "gang", []place{{"workers", "a", 3}})
	l.commit(t, gang)
	l.node(t, "a", 1000) // overfull from now on
	l.withQuota(t, "0")
	l.commit(t, replaced(gang, place{"workers", "a", 2}, place{"workers", "b", 1}))
	if got := l.reservedByNode(t); got["a"] != 2000 || got["b"] != 1000 {
		t.Errorf("reserved are %v, want two pods on a and one on b", got)
	}
	refused := func(why, constraint string, changes state.Changes) {
		t.Helper()
		changes.Epoch, changes.Version = l.term.Epoch, l.version(t)+1
		var violation *pgconn.PgError
		if _, err := l.Commit(t.Context(), changes); !errors.As(err, &violation) || violation.ConstraintName != constraint {
			t.Errorf("%s: %v, want a violation of %s", why, err, constraint)
		}
	}
	refused("back to a node that has shrunk", "no_overcommit", replaced(gang, place{"workers", "a", 3}))
	grown := replaced(gang, place{"workers", "a", 2}, place{"workers", "b", 1}, place{"more", "n", 1})
	record := &grown.Updated[0]
	record.PodSets = append(record.PodSets, record.PodSets[0])
	record.PodSets[1].Name, record.PodSets[1].Count = "more", 1
	refused("growth beyond quota that was taken away", "no_overuse", grown)
}

// What a store remembers of the ledger ends with its term: another leader may have
// removed it meanwhile.
func TestNothingIsRememberedFromAnEarlierTerm(t *testing.T) {
	t.Parallel()
	l := open(t)
	first := admitted(1, "first", 1, 1, 100)
	l.commit(t, first) // and with it the shape
	ended := first.Added[0].Record
	ended.Phase, ended.Holding = workload.Cancelled, false
	l.commit(t, state.Changes{Freed: []workload.ID{ended.ID}, Updated: []workload.Record{ended}})
	l.term.End()
	other, err := l.Lead(t.Context(), "another", silence, func() {})
	if err != nil {
		t.Fatal(err)
	}
	otherStore := l.again(t)
	if err := otherStore.Tidy(t.Context(), other.Epoch); err != nil {
		t.Fatal(err)
	}
	other.End()
	if l.term, err = l.Lead(t.Context(), "test", silence, func() {}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.term.End)
	l.commit(t, admitted(2, "second", 1, 1, 100))
}
