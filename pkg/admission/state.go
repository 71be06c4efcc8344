package admission

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/capacity"
	"muster.dev/muster/pkg/placement"
	"muster.dev/muster/pkg/quota"
	"muster.dev/muster/pkg/resource"
	"muster.dev/muster/pkg/roster"
	"muster.dev/muster/pkg/workload"
)

// NodeKey names a node of a cluster.
type NodeKey struct {
	Cluster, Name string
}

// State is what a decision is made on: nodes, quota, who waits and who has been
// started. The caller tells it what happens; Decide carries its own plan out in
// it. It is not safe for concurrent use.
type State struct {
	fleets   map[string]*placement.Fleet // by cluster
	clusters []string                    // sorted
	tree     *quota.Tree
	queues   map[string]*queue // by ClusterQueue
	sorted   []*queue          // by name
	shapes   map[string]*shape
	variants map[string]*variant
	aliases  map[*workload.PodSet]*shape
	waiting  *roster.Roster[workload.ID, Waiting]
	started  map[workload.ID]*Started
	fresh    []*Waiting // no decision has looked at them yet
	later    []*Waiting // backing off, by NotBefore
	claims   []*claim   // by before
	holds    []*hold    // by before of their heads
	// fought has, by preemptor, whom it had evicted: see the package comment on
	// why preemption ends.
	fought map[workload.ID]map[workload.ID]bool
	// grown says that some node has more free, or that there is a new cluster,
	// since the last decision; freed are the trees of queues of which quota came
	// back.
	grown, newCluster bool
	freed             map[string]bool
	remeasured        bool      // the measure of shares is another since then
	decided, nextAt   time.Time // when the last decision was made, and its NextAt
	left              int64     // how many gangs have left that were not evicted
	size              map[NodeKey]resource.List
	total             resource.List // allocatable on all nodes
	searched          Searched
}

// NewState returns a state with the queues of a tree, of which nothing is used
// yet; nil is a tree without queues. A queue that the tree does not know has no
// quota and is BestEffortFIFO.
func NewState(tree *quota.Tree) *State {
	if tree == nil {
		tree, _ = quota.New(quota.Config{}) // nothing is valid
	}
	return &State{
		fleets: map[string]*placement.Fleet{}, tree: tree, queues: map[string]*queue{}, shapes: map[string]*shape{},
		variants: map[string]*variant{}, aliases: map[*workload.PodSet]*shape{},
		waiting: newWaiting(0), started: map[workload.ID]*Started{},
		fought: map[workload.ID]map[workload.ID]bool{}, freed: map[string]bool{},
		size: map[NodeKey]resource.List{}, total: resource.List{},
	}
}

// newWaiting has room for about so many, of whom there may be a million.
func newWaiting(expected int) *roster.Roster[workload.ID, Waiting] {
	return roster.New(expected, func(w *Waiting) workload.ID { return w.Workload.ID })
}

// Reserve makes room for so many to wait, before any does: what grows bit by bit is
// moved again and again.
func (s *State) Reserve(waiting int) {
	s.waiting = newWaiting(waiting)
	s.fresh = make([]*Waiting, 0, waiting)
}

// Quota is the tree of queues with what they use. It is for reading.
func (s *State) Quota() *quota.Tree { return s.tree }

func (s *State) fleet(cluster string) *placement.Fleet {
	fleet := s.fleets[cluster]
	if fleet == nil {
		fleet = placement.NewFleet()
		s.fleets[cluster] = fleet
		alike := map[*shape]int{} // a million may wait, of few shapes
		for w := range s.waiting.All() {
			if w.claimed(s) == nil {
				alike[w.shape]++
			}
		}
		for sh, gangs := range alike { // demand is a sum, so their order does not matter
			fleet.Expect(sh.demand, gangs)
		}
		i, _ := slices.BinarySearch(s.clusters, cluster)
		s.clusters = slices.Insert(s.clusters, i, cluster)
	}
	return fleet
}

// SetNode adds a node or replaces what is observed of it.
func (s *State) SetNode(n capacity.Node) {
	fleet := s.fleet(n.Cluster)
	s.newCluster = s.newCluster || fleet.Len() == 0
	s.grown = fleet.SetNode(n) || s.grown
	s.resize(NodeKey{n.Cluster, n.Name}, n.Allocatable)
}

// RemoveNode forgets a node. What gangs have there stays taken, in case it comes
// back.
func (s *State) RemoveNode(key NodeKey) {
	if fleet := s.fleets[key.Cluster]; fleet != nil {
		fleet.RemoveNode(key.Name)
		s.resize(key, nil)
	}
}

// resize keeps the sum of all nodes, which is the measure of shares where nobody
// has quota: less may mean that somebody else has too large a one.
func (s *State) resize(key NodeKey, allocatable resource.List) {
	s.total = s.total.Minus(s.size[key]).Plus(allocatable)
	if allocatable == nil {
		delete(s.size, key)
	} else {
		s.size[key] = allocatable
	}
	s.remeasured = s.tree.SetCapacity(s.total) || s.remeasured
}

// SetExtra says what pods of gangs take on a node outside any reservation.
func (s *State) SetExtra(key NodeKey, amounts resource.List) {
	s.grown = s.fleet(key.Cluster).SetExtra(key.Name, amounts) || s.grown
}

// Started is a gang that has places: from its admission until its pods have been
// seen gone.
type Started struct {
	Workload   *workload.Workload
	Order      int64 // as of Waiting
	Queue      string
	Cluster    string
	Placements []workload.Placement
	Flavors    []workload.PodSetFlavors
	Admitted   time.Time
	// RunTime is how long it is declared to hold its places from then on; zero
	// when that is not known.
	RunTime time.Duration
	// Going: it is being torn down or has ended, and holds its places only until
	// its pods are gone.
	Going bool
	// Kept: it is not evicted, whatever asks for its places.
	Kept bool

	queue     *queue
	charges   []quota.Charge
	preempted bool // going because of a preemption
}

// Start says that a gang has places. Decide does so for those that it admits; it
// is for gangs that were admitted before this state was made.
func (s *State) Start(g Started) {
	added, w := &g, *g.Workload // the caller's may change while it has places
	added.Workload = &w
	if added.Queue == "" {
		added.Queue = s.clusterQueue(g.Workload)
	}
	added.queue = s.queue(added.Queue)
	added.charges = quota.ChargesOf(g.Workload.PodSets, g.Flavors)
	s.fleet(g.Cluster).Take(g.Workload, g.Placements)
	added.queue.quota.Use(added.charges)
	s.started[g.Workload.ID] = added
	added.queue.started[g.Workload.ID] = added
}

// Leave says that a started gang is being torn down or has ended: it is no
// candidate for preemption any more, and others may count on its places.
func (s *State) Leave(id workload.ID) {
	s.StopGrowing(id)
	if g := s.started[id]; g != nil && !g.Going {
		g.Going = true
		s.left++
	}
}

// Keep says that a started gang stays where it is until further notice: it is not
// evicted, and nothing is known of its end.
func (s *State) Keep(id workload.ID) {
	if g := s.started[id]; g != nil {
		g.Kept, g.Going = true, false
	}
}

// Release says that the pods of a started gang are gone: its places and its
// quota are free.
func (s *State) Release(id workload.ID) {
	g := s.started[id]
	if g == nil {
		return
	}
	s.StopGrowing(id)
	delete(s.started, id)
	delete(g.queue.started, id)
	s.giveBack(g.queue, g.Cluster, g.Workload, g.Placements, g.charges)
	if !g.preempted {
		delete(s.fought, id)
	}
}

func (s *State) giveBack(q *queue, cluster string, w *workload.Workload, places []workload.Placement, charges []quota.Charge) {
	s.fleet(cluster).Give(w, places)
	q.quota.Free(charges)
	s.grown = true
	s.freed[q.quota.Root()] = true
}

// QueueOf returns the ClusterQueue of a workload.
func (s *State) QueueOf(w *workload.Workload) *quota.Queue { return s.queue(s.clusterQueue(w)).quota }

// Counts returns how many workloads wait, those included that gangs are evicted
// for, and how many have places.
func (s *State) Counts() (waiting, started int) { return s.waiting.Len(), len(s.started) }

// Pending reports whether a decision at this time could differ from the last
// one.
func (s *State) Pending(now time.Time) bool {
	return len(s.fresh) > 0 || s.waiting.Len() > 0 && (s.grown || s.newCluster || s.remeasured || len(s.freed) > 0 || s.due(now)) || s.mustDrain()
}

// due reports whether a time has come that the last decision named.
func (s *State) due(now time.Time) bool { return !s.nextAt.IsZero() && !now.Before(s.nextAt) }

// mustDrain reports whether gangs have places by way of a queue that is drained.
func (s *State) mustDrain() bool {
	return slices.ContainsFunc(s.sorted, func(q *queue) bool {
		return q.quota.StopPolicy == quota.HoldAndDrain && slices.ContainsFunc(q.inOrder(), func(g *Started) bool { return !g.Going && !g.Kept })
	})
}

// inOrder returns the started gangs of the queue by submission.
func (q *queue) inOrder() []*Started {
	return slices.SortedFunc(maps.Values(q.started), func(a, b *Started) int { return cmp.Compare(a.Order, b.Order) })
}
