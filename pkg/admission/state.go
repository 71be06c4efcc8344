// Package admission decides which waiting gangs start, on which nodes, and why
// the others wait.
//
// It is pure: a State is plain memory that the caller keeps true, Decide reads
// it and returns a Plan without changing anything. No context, clock, logger,
// randomness or I/O; the same state gives the same plan on any machine. It does
// not know Kubernetes, Postgres or NATS, and it does not carry a plan out.
//
// Order: by priority, then by submission, over all queues. A gang is tried on
// one cluster after the other and lives wholly in one. In a StrictFIFO queue
// nobody passes a waiting gang; in a BestEffortFIFO queue whoever fits may.
//
// Search: pod sets in order of size, each pod onto the eligible node that it
// leaves fullest (greedy, O(pods x nodes)); when that fails although each pod
// set fits on its own, a depth-first search over nodes that differ, up to
// searchBudget steps. So fits and does-not-fit are exact, and a spent budget is
// said as ReasonUnknown.
package admission

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	"muster.dev/muster/pkg/capacity"
	"muster.dev/muster/pkg/resource"
	"muster.dev/muster/pkg/workload"
)

// Strategies of a queue, in Kueue's words.
const (
	StrictFIFO     = "StrictFIFO"
	BestEffortFIFO = "BestEffortFIFO"
)

// NodeKey names a node of a cluster.
type NodeKey struct {
	Cluster, Name string
}

// node is a node with what is taken on it.
type node struct {
	capacity.Node
	taken resource.List // reserved for gangs, plus pods of gangs outside any reservation
	free  resource.List // allocatable - unmanaged - taken
	room  room          // of free
	// class is the same for nodes that refuse the same templates.
	class string
}

// Waiting is a workload in a queue.
type Waiting struct {
	Workload *workload.Workload
	// Order is the submission's place among all submissions; an evicted workload
	// keeps it.
	Order int64

	shape string
}

// State is what a decision is made on. It is not safe for concurrent use.
type State struct {
	nodes    map[NodeKey]*node
	clusters map[string][]*node // sorted by name
	strict   map[string]bool    // queues with StrictFIFO
	waiting  []*Waiting         // sorted by before
	// grown says that capacity has been added since the last Settle, so that
	// gangs which did not fit may fit now.
	grown bool
	// fresh are the waiting that no decision has looked at yet.
	fresh []*Waiting
}

// NewState returns an empty state.
func NewState() *State {
	return &State{nodes: map[NodeKey]*node{}, clusters: map[string][]*node{}, strict: map[string]bool{}}
}

// SetQueue makes a queue's strategy known; unknown queues are BestEffortFIFO.
func (s *State) SetQueue(name, strategy string) {
	s.strict[name] = strategy == StrictFIFO
	s.grown = true
}

// SetNode adds a node or replaces what is known of it. taken is what gangs use
// or have reserved there.
func (s *State) SetNode(n capacity.Node, taken resource.List) {
	key := NodeKey{n.Cluster, n.Name}
	updated := &node{Node: n, taken: taken, class: classOf(n)}
	updated.free = n.Allocatable.Minus(n.Unmanaged).Minus(taken)
	updated.room = roomOf(updated.free)
	old, known := s.nodes[key]
	s.nodes[key] = updated
	list := s.clusters[n.Cluster]
	i, _ := slices.BinarySearchFunc(list, n.Name, func(n *node, name string) int { return cmp.Compare(n.Name, name) })
	if known {
		list[i] = updated
	} else {
		s.clusters[n.Cluster] = slices.Insert(list, i, updated)
	}
	s.grown = s.grown || !known || old.class != updated.class || !updated.free.FitsIn(old.free)
}

// RemoveNode forgets a node.
func (s *State) RemoveNode(key NodeKey) {
	if _, known := s.nodes[key]; !known {
		return
	}
	delete(s.nodes, key)
	s.clusters[key.Cluster] = slices.DeleteFunc(s.clusters[key.Cluster], func(n *node) bool { return n.Name == key.Name })
}

// Enqueue adds a workload to the waiting.
func (s *State) Enqueue(w Waiting) {
	added := &w
	added.shape = shapeOf(w.Workload)
	i, _ := slices.BinarySearchFunc(s.waiting, added, before)
	s.waiting = slices.Insert(s.waiting, i, added)
	s.fresh = append(s.fresh, added)
}

// Dequeue removes a workload from the waiting.
func (s *State) Dequeue(id workload.ID, priority int32, order int64) {
	at := &Waiting{Workload: &workload.Workload{ID: id, Priority: priority}, Order: order}
	i, found := slices.BinarySearchFunc(s.waiting, at, before)
	if found {
		gone := s.waiting[i]
		s.waiting = slices.Delete(s.waiting, i, i+1)
		s.fresh = slices.DeleteFunc(s.fresh, func(w *Waiting) bool { return w == gone })
		// A strict queue may have a new head.
		s.grown = s.grown || s.strict[gone.Workload.Queue]
	}
}

// Settle says that a decision on this state has been taken over.
func (s *State) Settle() { s.grown, s.fresh = false, nil }

// Pending reports whether a decision could differ from the last one.
func (s *State) Pending() bool { return s.grown && len(s.waiting) > 0 || len(s.fresh) > 0 }

// before orders the waiting: priority, then submission.
func before(a, b *Waiting) int {
	return cmp.Or(cmp.Compare(b.Workload.Priority, a.Workload.Priority), cmp.Compare(a.Order, b.Order))
}

// shapeOf is the same for workloads that fit in the same places.
func shapeOf(w *workload.Workload) string {
	encoded, err := json.Marshal(w.PodSets)
	if err != nil {
		panic(fmt.Sprintf("pod sets of workload %s cannot be encoded: %v", w.ID, err)) // plain data always can
	}
	sum := sha256.Sum256(encoded)
	return string(sum[:])
}

// classOf is the same for nodes that refuse the same templates. Nodes differ in
// their name and hostname, which only few templates ask for.
func classOf(n capacity.Node) string {
	labels := make(map[string]string, len(n.Labels))
	for key, value := range n.Labels {
		if key != hostnameLabel || value != n.Name {
			labels[key] = value
		}
	}
	encoded, err := json.Marshal([]any{labels, n.Taints, n.Ready, n.Cordoned})
	if err != nil {
		panic(fmt.Sprintf("labels of node %s/%s cannot be encoded: %v", n.Cluster, n.Name, err)) // plain data always can
	}
	return string(encoded)
}

// hostnameLabel tells single nodes apart, so it is left out of their class.
const hostnameLabel = "kubernetes.io/hostname"
