package book

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/admission"
	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/capacity"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/resource"
	"muster.dev/muster/pkg/workload"
)

// Changes is what one transaction writes: all of it or nothing.
type Changes struct {
	Epoch int64
	// Version is what the ledger becomes by it: one more than the version that it
	// was decided on, or that version itself when there is nothing to write.
	Version int64
	Added   []Added
	Updated []workload.Record
	// Grown is how many running gangs got more places.
	Grown int
	// Freed are the workloads whose reservations end. Freed before Reserved.
	Freed    []workload.ID
	Reserved []Reservation
	// Moved are all reservations of the workloads that have other ones now, one
	// workload after the other in the order in which they got them: one may have
	// what another before it has left.
	Moved    []Reservation
	Nodes    []NodeRow
	History  []HistoryRow
	Messages []Message
}

// Empty reports whether there is nothing to write.
func (c Changes) Empty() bool {
	return len(c.Added) == 0 && len(c.Updated) == 0 && len(c.Freed) == 0 && len(c.Reserved) == 0 && len(c.Moved) == 0 &&
		len(c.Nodes) == 0 && len(c.History) == 0 && len(c.Messages) == 0
}

// Added is a new workload.
type Added struct {
	workload.Record
	Order    int64
	Manifest json.RawMessage
}

// Reservation is a row of the ledger: pods of a pod set on a node.
type Reservation struct {
	Workload workload.ID
	Attempt  int
	Cluster  string
	workload.Placement
	Requests resource.List // of one pod
	Charges  *Charges
}

// Charges is what a reservation is charged to; nil without quota.
type Charges struct {
	// Scopes are the ClusterQueue and the cohorts above it.
	Scopes []string `json:"scopes"`
	// Flavors of the resources that quota bounds.
	Flavors map[resource.Name]string `json:"flavors"`
}

// NodeRow is a node as last observed.
type NodeRow struct {
	capacity.Node
	Version event.Version
	Present bool
	// Used is what pods outside any reservation take.
	Used resource.List
	// Drop says that the node is gone and nothing is reserved on it any more.
	Drop bool
}

// HistoryRow is one step in a workload's life.
type HistoryRow struct {
	Workload workload.ID
	At       time.Time
	Phase    workload.Phase
	Attempt  int
	Cluster  string
	Reason   *workload.Reason
	EventID  string // of the event that tells it
}

// Message leaves after the commit.
type Message struct {
	ID      string
	Subject string
	At      time.Time
	TTL     time.Duration // zero for none
	Payload event.Payload
	// Traceparent is the context of the trace that it continues; set by who commits.
	Traceparent string
}

// changed collects changes until they are taken.
type changed struct {
	added     map[workload.ID]json.RawMessage
	workloads map[workload.ID]*entry
	freed     map[workload.ID]bool
	reserved  map[workload.ID]*entry
	moved     map[workload.ID]*entry
	moves     []workload.ID // the last of each in moved counts
	nodes     map[admission.NodeKey]bool
	history   []HistoryRow
	messages  []Message
	grown     int
}

func newChanged() *changed {
	return &changed{
		added: map[workload.ID]json.RawMessage{}, workloads: map[workload.ID]*entry{},
		freed: map[workload.ID]bool{}, reserved: map[workload.ID]*entry{}, moved: map[workload.ID]*entry{},
		nodes: map[admission.NodeKey]bool{},
	}
}

func (c *changed) move(e *entry) {
	c.moved[e.ID] = e
	c.moves = append(c.moves, e.ID)
}

func (c *changed) node(key admission.NodeKey) { c.nodes[key] = true }

// Take returns what changed since the last Take.
func (b *Book) Take() Changes {
	taken := Changes{Epoch: b.epoch, Grown: b.changed.grown, History: b.changed.history, Messages: b.changed.messages}
	byOrder := slices.SortedFunc(maps.Values(b.changed.workloads), func(x, y *entry) int { return cmp.Compare(x.order, y.order) })
	for _, e := range byOrder {
		if manifest, isNew := b.changed.added[e.ID]; isNew {
			taken.Added = append(taken.Added, Added{e.Record, e.order, manifest})
		} else {
			taken.Updated = append(taken.Updated, e.Record)
		}
		if b.changed.freed[e.ID] {
			taken.Freed = append(taken.Freed, e.ID)
		}
		if reserved, ok := b.changed.reserved[e.ID]; ok {
			taken.Reserved = append(taken.Reserved, b.reservations(reserved)...)
			delete(b.changed.moved, e.ID)
		}
	}
	for i, id := range b.changed.moves {
		if moved := b.changed.moved[id]; moved != nil && !slices.Contains(b.changed.moves[i+1:], id) {
			taken.Moved = append(taken.Moved, b.reservations(moved)...)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(b.changed.nodes), compareKeys) {
		if b.asideNodes[key] {
			continue
		}
		taken.Nodes = append(taken.Nodes, b.nodeRow(key))
	}
	b.changed = newChanged()
	if !taken.Empty() {
		b.version++
	}
	taken.Version = b.version
	return taken
}

// nodeRow returns the row of a node and forgets a node that is gone for good.
func (b *Book) nodeRow(key admission.NodeKey) NodeRow {
	n := b.nodes[key]
	row := NodeRow{Node: n.Node, Version: n.version, Present: n.present, Used: n.used()}
	if !n.present {
		row.Allocatable = resource.List{}
		if row.Drop = n.reserved.Equal(nil); row.Drop {
			b.dropNode(key)
		}
	}
	return row
}

func (b *Book) reservations(e *entry) []Reservation {
	var rows []Reservation
	for _, p := range e.Placements {
		row := Reservation{e.ID, e.Attempt, e.Cluster, p, e.requests(p.PodSet), nil}
		for _, f := range e.Flavors {
			if f.PodSet == p.PodSet {
				row.Charges = &Charges{b.admission.QueueOf(&e.Workload).Scopes(), f.Flavors}
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// say queues a message; its id is unique for ever, as epochs are.
func (b *Book) say(now time.Time, subject string, ttl time.Duration, payload event.Payload) {
	if c, ok := payload.(*event.WorkloadChanged); ok { // tenants read it
		c.Record = c.Record.ForTenant()
	}
	b.messages++
	b.changed.messages = append(b.changed.messages, Message{
		ID: fmt.Sprintf("queue-manager/%d/%d", b.epoch, b.messages), Subject: subject, At: now, TTL: ttl, Payload: payload,
	})
}

// tell announces the present state of a workload, with warnings when it is new,
// and notes it in its history.
func (b *Book) tell(e *entry, now time.Time, warnings ...string) {
	b.changed.workloads[e.ID] = e
	b.schedule(e)
	record := e.Record // as it is now, whatever happens to it later in this batch
	b.say(now, bus.EventsSubject(e.Queue, e.ID), 0, &event.WorkloadChanged{Record: record, Warnings: warnings})
	b.changed.history = append(b.changed.history, HistoryRow{
		Workload: e.ID, At: now, Phase: e.Phase, Attempt: e.Attempt, Cluster: e.Cluster, Reason: e.Reason,
		EventID: b.changed.messages[len(b.changed.messages)-1].ID,
	})
}
