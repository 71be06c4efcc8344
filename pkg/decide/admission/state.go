package admission

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/index"
	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// NodeKey names a node of a cluster.
type NodeKey struct {
	Cluster, Name string
}

// State is the input of a decision: nodes, quota, waiting workloads and started gangs.
// The caller reports what happens, and Decide applies its own plan to it. It is not
// safe for concurrent use.
type State struct {
	fleets       map[string]*placement.Fleet // by cluster
	clusters     []string                    // sorted
	tree         *quota.Tree
	queues       map[string]*queue // by ClusterQueue
	sorted       []*queue          // by name
	signatures   map[string]*podSetSignature
	flavored     map[string]*flavoredSignature
	aliases      map[*workload.PodSet]*podSetSignature
	waiting      *index.Index[workload.ID, Waiting]
	started      map[workload.ID]*Started
	fresh        []*Waiting         // enqueued since the last decision
	backingOff   []*Waiting         // by NotBefore
	nominations  []*nomination      // in the order of their workloads
	reservations []*headReservation // in the order of their heads
	// evictedFor has the victims of each preemptor; the package comment says why
	// preemption ends.
	evictedFor        map[workload.ID]map[workload.ID]bool
	events            events
	decidedAt, nextAt time.Time // when the last decision was made, and its NextAt
	departed          int64     // gangs that have left without an eviction
	nodeSizes         map[NodeKey]resource.List
	total             resource.List // allocatable on all nodes
	searched          Searched
	allowance         allowance // of the searches of all queues
}

// NewState returns a state with the queues of a tree of which nothing is used; nil is
// a tree without queues. A queue that the tree does not have gets no quota and the
// strategy BestEffortFIFO.
func NewState(tree *quota.Tree) *State {
	if tree == nil {
		tree, _ = quota.New(quota.Config{}) // nothing is valid
	}
	return &State{
		fleets: map[string]*placement.Fleet{}, tree: tree, queues: map[string]*queue{}, signatures: map[string]*podSetSignature{},
		flavored: map[string]*flavoredSignature{}, aliases: map[*workload.PodSet]*podSetSignature{},
		waiting: newWaiting(0), started: map[workload.ID]*Started{},
		evictedFor: map[workload.ID]map[workload.ID]bool{}, events: events{quotaFreed: map[string]bool{}},
		nodeSizes: map[NodeKey]resource.List{}, total: resource.List{},
	}
}

// newWaiting returns an index with room for about that number of workloads.
func newWaiting(expected int) *index.Index[workload.ID, Waiting] {
	return index.New(expected, func(w *Waiting) workload.ID { return w.Workload.ID })
}

// Preallocate makes room for that number of waiting workloads in an empty state. An
// index that grows step by step copies its content at each step.
func (s *State) Preallocate(waiting int) {
	s.waiting = newWaiting(waiting)
	s.fresh = make([]*Waiting, 0, waiting)
}

// Quota returns the tree of queues with their usage, for reading.
func (s *State) Quota() *quota.Tree { return s.tree }

// AdvancePastUsage counts what queues used until now, when nothing is to be decided.
func (s *State) AdvancePastUsage(now time.Time) { s.tree.AdvanceChanged(now) }

// TakePastUsage returns the past usage to be stored: of the queues whose usage has changed
// since the last call.
func (s *State) TakePastUsage() []quota.PastUsage { return s.tree.TakePastUsage() }

// SetPastUsage restores past usage as it was stored. Queues that are no longer configured
// are ignored.
func (s *State) SetPastUsage(stored []quota.PastUsage) {
	for _, past := range stored {
		if q := s.tree.Queue(past.Queue); q != nil {
			q.SetHistory(past.History)
		}
	}
}

// ForgetUsageChanges drops what was noted while the state was filled with what is stored.
func (s *State) ForgetUsageChanges() { s.tree.ForgetUsageChanges() }

// PastUsage returns the past usage of all queues, in the order of their names.
func (s *State) PastUsage() []quota.PastUsage { return s.tree.PastUsage() }

func (s *State) fleet(cluster string) *placement.Fleet {
	fleet := s.fleets[cluster]
	if fleet == nil {
		fleet = placement.NewFleet()
		s.fleets[cluster] = fleet
		gangsOf := map[*podSetSignature]int{} // a million may wait, with few signatures
		for w := range s.waiting.All() {
			if w.nomination(s) == nil {
				gangsOf[w.signature]++
			}
		}
		for sig, gangs := range gangsOf { // demand is a sum, so their order does not matter
			if sig.mayBeOn(cluster) {
				fleet.Expect(sig.demand, gangs)
			}
		}
		i, _ := slices.BinarySearch(s.clusters, cluster)
		s.clusters = slices.Insert(s.clusters, i, cluster)
	}
	return fleet
}

// SetNode adds a node or replaces what is observed of it.
func (s *State) SetNode(n capacity.Node) {
	fleet := s.fleet(n.Cluster)
	s.events.clusterAdded = s.events.clusterAdded || fleet.Len() == 0
	before, was := fleet.Node(n.Name)
	s.noteCapacity(fleet.SetNode(n))
	s.noteOffer(NodeKey{n.Cluster, n.Name}, before, was)
	s.resizeNode(NodeKey{n.Cluster, n.Name}, n.Allocatable)
}

// RemoveNode forgets a node. The places of gangs on it stay allocated, in case it
// comes back.
func (s *State) RemoveNode(key NodeKey) {
	if fleet := s.fleets[key.Cluster]; fleet != nil {
		before, was := fleet.Node(key.Name)
		fleet.RemoveNode(key.Name)
		s.noteOffer(key, before, was)
		s.resizeNode(key, nil)
	}
}

// resizeNode updates the sum of all nodes. Shares of a resource without quota are
// fractions of that sum, so a smaller one can make a share too large.
func (s *State) resizeNode(key NodeKey, allocatable resource.List) {
	s.total = s.total.Minus(s.nodeSizes[key]).Plus(allocatable)
	if allocatable == nil {
		delete(s.nodeSizes, key)
	} else {
		s.nodeSizes[key] = allocatable
	}
	s.events.shareBaseChanged = s.tree.SetCapacity(s.total) || s.events.shareBaseChanged
}

// SetExtra sets what pods of gangs use of a node beyond their placements.
func (s *State) SetExtra(key NodeKey, amounts resource.List) {
	s.noteCapacity(s.fleet(key.Cluster).SetExtra(key.Name, amounts))
}

// Started is a gang that has places: from its admission until its pods have been
// observed gone.
type Started struct {
	Workload   *workload.Workload
	Order      int64 // as of Waiting
	Queue      string
	Cluster    string
	Placements []workload.Placement
	Flavors    []workload.PodSetFlavors
	Admitted   time.Time
	// RunTime is the declared run time, counted from Admitted; zero when none is
	// declared.
	RunTime time.Duration
	// Terminating: it is being torn down or has ended, and keeps its places only until
	// its pods are gone.
	Terminating bool
	// Frozen: it is never evicted.
	Frozen bool
	// Progress is what is known of its work; see State.SetProgress.
	Progress Progress

	queue     *queue
	charges   []quota.Charge
	preempted bool // terminating because of a preemption
}

// Start adds a gang that was admitted before this state was made. Decide adds those
// that it admits.
func (s *State) Start(g Started) {
	added, w := &g, *g.Workload // the caller's may change while it has places
	added.Workload = &w
	if added.Queue == "" {
		added.Queue = s.clusterQueue(g.Workload)
	}
	added.queue = s.queue(added.Queue)
	added.charges = quota.ChargesOf(g.Workload.PodSets, g.Flavors)
	s.fleet(g.Cluster).Allocate(g.Workload, g.Placements)
	added.queue.quota.Allocate(added.charges)
	s.started[g.Workload.ID] = added
	added.queue.started[g.Workload.ID] = added
}

// Leave marks a started gang that is being torn down or has ended. It is no candidate
// for preemption any more, and others may count on its places.
func (s *State) Leave(id workload.ID) {
	s.StopGrowing(id)
	if g := s.started[id]; g != nil && !g.Terminating {
		g.Terminating = true
		s.departed++
	}
}

// Freeze keeps a started gang from eviction. Its end counts as unknown.
func (s *State) Freeze(id workload.ID) {
	if g := s.started[id]; g != nil {
		g.Frozen, g.Terminating = true, false
	}
}

// Release frees the places and the quota of a started gang whose pods are gone.
func (s *State) Release(id workload.ID) {
	g := s.started[id]
	if g == nil {
		return
	}
	s.StopGrowing(id)
	delete(s.started, id)
	delete(g.queue.started, id)
	s.releaseAll(g.queue, g.Cluster, g.Workload, g.Placements, g.charges)
	if !g.preempted {
		delete(s.evictedFor, id)
	}
}

func (s *State) releaseAll(q *queue, cluster string, w *workload.Workload, places []workload.Placement, charges []quota.Charge) {
	s.fleet(cluster).Release(w, places)
	q.quota.Release(charges)
	s.noteCapacity(true)
	s.noteQuotaFreed(q)
}

// QueueOf returns the ClusterQueue of a workload.
func (s *State) QueueOf(w *workload.Workload) *quota.Queue { return s.queue(s.clusterQueue(w)).quota }

// Counts returns the numbers of waiting workloads, nominated ones included, and of
// started gangs.
func (s *State) Counts() (waiting, started int) { return s.waiting.Len(), len(s.started) }

// Pending reports whether a decision at this time could differ from the last
// one.
func (s *State) Pending(now time.Time) bool {
	return len(s.fresh) > 0 || s.waiting.Len() > 0 && (s.events.any() || s.due(now) || s.offersMayChange()) || s.mustDrain()
}

// due reports whether the NextAt of the last decision has come.
func (s *State) due(now time.Time) bool { return !s.nextAt.IsZero() && !now.Before(s.nextAt) }

// mustDrain reports whether gangs of a drained queue have to be evicted.
func (s *State) mustDrain() bool {
	return slices.ContainsFunc(s.sorted, func(q *queue) bool {
		return q.quota.StopPolicy == quota.HoldAndDrain && slices.ContainsFunc(q.inOrder(), func(g *Started) bool { return !g.Terminating && !g.Frozen })
	})
}

// inOrder returns the started gangs of the queue by submission.
func (q *queue) inOrder() []*Started {
	return slices.SortedFunc(maps.Values(q.started), func(a, b *Started) int { return cmp.Compare(a.Order, b.Order) })
}
