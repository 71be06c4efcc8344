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
// Whether and where a gang fits is package placement's to say.
package admission

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"

	"muster.dev/muster/pkg/capacity"
	"muster.dev/muster/pkg/placement"
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
	fleets  map[string]*placement.Fleet // by cluster
	strict  map[string]bool             // queues with StrictFIFO
	waiting []*Waiting                  // sorted by before
	// grown says that capacity has been added since the last Settle, so that
	// gangs which did not fit may fit now.
	grown bool
	// fresh are the waiting that no decision has looked at yet.
	fresh []*Waiting
}

// NewState returns an empty state.
func NewState() *State {
	return &State{fleets: map[string]*placement.Fleet{}, strict: map[string]bool{}}
}

// SetQueue makes a queue's strategy known; unknown queues are BestEffortFIFO.
func (s *State) SetQueue(name, strategy string) {
	s.strict[name] = strategy == StrictFIFO
	s.grown = true
}

// SetNode adds a node or replaces what is known of it. taken is what gangs use
// or have reserved there.
func (s *State) SetNode(n capacity.Node, taken resource.List) {
	fleet := s.fleets[n.Cluster]
	if fleet == nil {
		fleet = placement.NewFleet()
		s.fleets[n.Cluster] = fleet
	}
	less := fleet.SetExtra(n.Name, taken)
	s.grown = fleet.SetNode(n) || less || s.grown
}

// RemoveNode forgets a node.
func (s *State) RemoveNode(key NodeKey) {
	if fleet := s.fleets[key.Cluster]; fleet != nil {
		fleet.SetExtra(key.Name, nil)
		fleet.RemoveNode(key.Name)
	}
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
