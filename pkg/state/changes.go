package state

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Changes is what one transaction writes: all of it or nothing.
type Changes struct {
	Epoch int64
	// Version is what the ledger becomes by it: one more than the version that it
	// was decided on, or that version itself when there is nothing to write.
	Version int64
	Added   []Added
	Updated []workload.Record
	// Asked are the last requests of workloads of which something was asked; each is among
	// Added or Updated, too.
	Asked []Asked
	// HeardAgain are the workloads whose deadlines begin again; each is among Updated, too.
	HeardAgain []HeardAgain
	// Grown is how many running gangs got more places.
	Grown int
	// Freed are the workloads whose reservations end. Freed before Reserved.
	Freed    []workload.ID
	Reserved []Reservation
	// Replaced are all reservations of the started workloads that have other ones now, one
	// workload after the other in the order in which they got them: one may have
	// what another before it has left.
	Replaced []Reservation
	Nodes    []NodeRow
	// PastUsage is the past usage of the queues whose usage has changed. It goes with what
	// changed their usage, and is never all that there is to write.
	PastUsage []quota.PastUsage
	// Learned is what was learned of the cost of evictions and has changed. It goes with the
	// steps that were measured.
	Learned  []admission.Learned
	History  []HistoryRow
	Messages []Message
}

// Empty reports whether there is nothing to write.
func (c Changes) Empty() bool {
	return len(c.Added) == 0 && len(c.Updated) == 0 && len(c.Freed) == 0 && len(c.Reserved) == 0 && len(c.Replaced) == 0 &&
		len(c.Nodes) == 0 && len(c.History) == 0 && len(c.Messages) == 0
}

// Added is a new workload.
type Added struct {
	workload.Record
	Order    int64
	Manifest json.RawMessage
}

// Asked are the last requests that were taken in for a workload.
type Asked struct {
	Workload workload.ID
	workload.Asked
}

// HeardAgain is when the cluster of a workload was heard again after a silence.
type HeardAgain struct {
	Workload workload.ID
	At       time.Time
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
	// Drop means that the node is gone and nothing is reserved on it any more.
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
	EventID  string // of the event that reports it
	// Usage is what the workload holds from then on; nil for a step that neither holds nor
	// frees anything. The record of a decision leaves it out, because it follows from the
	// workload.
	Usage *workload.UsageStep `json:"-"`
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

// Flush returns what changed since the last Flush.
func (s *State) Flush() Changes {
	flushed := Changes{Epoch: s.epoch, Grown: s.changed.grown, History: s.changed.history, Messages: s.changed.messages}
	byOrder := slices.SortedFunc(maps.Values(s.changed.workloads), func(x, y *entry) int { return cmp.Compare(x.order, y.order) })
	for _, e := range byOrder {
		if manifest, isNew := s.changed.added[e.ID]; isNew {
			flushed.Added = append(flushed.Added, Added{e.Record, e.order, manifest})
		} else {
			flushed.Updated = append(flushed.Updated, e.Record)
		}
		if asked, ok := s.lastAsked[e.ID]; ok && s.changed.asked[e.ID] {
			flushed.Asked = append(flushed.Asked, Asked{e.ID, asked})
		}
		if s.changed.heardAgain[e.ID] && e.attemptState != nil {
			flushed.HeardAgain = append(flushed.HeardAgain, HeardAgain{e.ID, e.heardAgain})
		}
		if s.changed.freed[e.ID] {
			flushed.Freed = append(flushed.Freed, e.ID)
		}
		if reserved, ok := s.changed.reserved[e.ID]; ok {
			flushed.Reserved = append(flushed.Reserved, s.reservations(reserved)...)
			delete(s.changed.replaced, e.ID)
		}
	}
	for i, id := range s.changed.replacedOrder {
		if replaced := s.changed.replaced[id]; replaced != nil && !slices.Contains(s.changed.replacedOrder[i+1:], id) {
			flushed.Replaced = append(flushed.Replaced, s.reservations(replaced)...)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(s.changed.nodes), compareKeys) {
		if s.quarantinedNodes[key] {
			continue
		}
		flushed.Nodes = append(flushed.Nodes, s.nodeRow(key))
	}
	s.changed = newChangeSet()
	if !flushed.Empty() {
		flushed.PastUsage, flushed.Learned = s.admission.TakePastUsage(), s.admission.TakeLearned()
		s.version++
	}
	flushed.Version = s.version
	return flushed
}

// nodeRow returns the row of a node and forgets a node that is gone for good.
func (s *State) nodeRow(key admission.NodeKey) NodeRow {
	n := s.nodes[key]
	row := NodeRow{Node: n.Node, Version: n.version, Present: n.present, Used: n.used()}
	if !n.present {
		row.Allocatable = resource.List{}
		if row.Drop = n.reserved.Equal(nil); row.Drop {
			s.dropNode(key)
		}
	}
	return row
}

func (s *State) reservations(e *entry) []Reservation {
	var rows []Reservation
	for _, p := range e.Placements {
		row := Reservation{e.ID, e.Attempt, e.Cluster, p, e.requests(p.PodSet), nil}
		for _, f := range e.Flavors {
			if f.PodSet == p.PodSet {
				row.Charges = &Charges{s.admission.QueueOf(&e.Workload).Scopes(), f.Flavors}
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// emit adds a message to the changes; its id is unique for ever, as epochs are. What leaves
// a step goes through it: commands, requests, removals and events.
func (l *lifecycle) emit(now time.Time, subject string, ttl time.Duration, payload event.Payload) {
	if c, ok := payload.(*event.WorkloadChanged); ok { // tenants read it
		c.Record = c.Record.ForTenant()
	}
	l.messages++
	l.changed.messages = append(l.changed.messages, Message{
		ID: fmt.Sprintf("queue-manager/%d/%d", l.epoch, l.messages), Subject: subject, At: now, TTL: ttl, Payload: payload,
	})
}

// commandOrder is the order of the command that emit adds next: the number in its id.
func (l *lifecycle) commandOrder() int64 { return int64(l.messages + 1) }

// emitChanged emits the present state of a workload, with warnings when it is new, and adds
// its row and a line of its history to the changes.
func (l *lifecycle) emitChanged(e *entry, now time.Time, warnings ...string) {
	l.changed.workloads[e.ID] = e
	l.setTimer(e)
	record := e.Record // as it is now, whatever happens to it later in this batch
	l.emit(now, event.EventsSubject(e.Queue, e.ID), 0, &event.WorkloadChanged{Record: record, Warnings: warnings, Certificate: l.proof(e, now)})
	l.changed.history = append(l.changed.history, HistoryRow{
		Workload: e.ID, At: now, Phase: e.Phase, Attempt: e.Attempt, Cluster: e.Cluster, Reason: e.Reason,
		EventID: l.changed.messages[len(l.changed.messages)-1].ID, Usage: l.usage(e, now),
	})
}

// usage is what a workload holds from now on, if it holds something or has just freed it.
func (l *lifecycle) usage(e *entry, now time.Time) *workload.UsageStep {
	freed, isFreed := l.changed.freedUsage[e.ID]
	if !e.Holding && !isFreed {
		return nil
	}
	step := &workload.UsageStep{Queue: e.Queue, Namespace: e.Namespace, Submitter: e.Submitter}
	if !e.Holding {
		step.Checkpoint = freed.checkpoint
		return step
	}
	step.Held = workload.HeldBy(e.PodSets, e.Flavors)
	step.Checkpoint, step.IdleSince = e.Saved().Last(e.Attempt), e.idleSince
	if e.Phase == workload.Admitted && e.Attempt == 1 && e.Times.Admitted.Equal(now) {
		step.Since = e.Times.Submitted
	}
	return step
}
