package admission

import (
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/index"
	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// State is the input of a decision: nodes, quota, waiting workloads and started gangs.
// The caller reports what happens, and Decide applies its own plan to it. It is not
// safe for concurrent use.
type State struct {
	fleets       map[string]*placement.Fleet // by cluster
	clusters     []string                    // sorted
	uncleared    map[string]bool             // the silent ones that report again, and may have something left; never changed in place
	silent       map[string]time.Time        // since when clusters do not report; never changed in place
	served       map[string]servedKinds      // by cluster; unknown of others; never changed in place
	listed       map[string]bool             // clusters that have listed their nodes; never changed in place
	newest       map[string]time.Time        // by cluster, when its youngest node was created; never changed in place
	tree         *quota.Tree
	queues       map[string]*queue // by ClusterQueue
	sorted       []*queue          // by name
	signatures   map[string]*podSetSignature
	flavored     map[string]*flavoredSignature
	aliases      map[*workload.PodSet]*podSetSignature
	waiting      *index.Index[workload.ID, Waiting]
	started      map[workload.ID]*Started
	held         int                // of the waiting, those that are held themselves
	fresh        []*Waiting         // enqueued since the last decision
	unsettled    []*Waiting         // nominated in an earlier term, while no cluster reports
	unreported   []*Waiting         // those whose reasons the next decisions report
	backingOff   []*Waiting         // by NotBefore
	nominations  []*nomination      // in the order of their workloads
	asked        []*Waiting         // that hold quota for nodes that are asked for, in order
	reservations []*headReservation // in the order of their heads
	// evictedFor: the package comment explains why preemption ends.
	evictedFor        pastEvictions
	events            events
	decidedAt, nextAt time.Time // when the last decision was made, and its NextAt
	repeatAt          time.Time // when reservations and nominations are looked at again without any event; zero for never
	askedAt           time.Time // when one whose nodes have come is tried again without any event; zero for never
	departed          int64     // gangs that have left without an eviction, or have another priority
	nodeSizes         map[NodeKey]resource.List
	namespaces        *namespaces   // copies of the state share them
	total             resource.List // allocatable on all nodes
	searched          Searched
	victimOrder       VictimOrder
	learned           learned   // of the cost of evictions
	allowance         allowance // of the searches of all queues
}

// NewState returns a state with the queues of a tree of which nothing is used; nil is
// a tree without queues. A queue that the tree does not have gets no quota and the
// strategy BestEffortFIFO.
func NewState(tree *quota.Tree) *State {
	if tree == nil {
		tree, _ = quota.New(quota.Config{}) // nothing is valid
	}
	s := &State{
		fleets: map[string]*placement.Fleet{}, tree: tree, queues: map[string]*queue{}, signatures: map[string]*podSetSignature{},
		flavored: map[string]*flavoredSignature{}, aliases: map[*workload.PodSet]*podSetSignature{},
		waiting: newWaiting(0), started: map[workload.ID]*Started{},
		evictedFor: newPastEvictions(0), events: events{quotaFreed: map[string]bool{}},
		nodeSizes: map[NodeKey]resource.List{}, total: resource.List{}, namespaces: newNamespaces(), learned: newLearned(),
	}
	s.namespaces.left = tree.LeftClusters()
	return s
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
		s.tree.SetPastUsage(past)
	}
}

// ForgetUsageChanges drops what was noted while the state was filled with what is stored.
func (s *State) ForgetUsageChanges() { s.tree.ForgetUsageChanges() }

// PastUsage returns the past usage of all queues, in the order of their names.
func (s *State) PastUsage() []quota.PastUsage { return s.tree.PastUsage() }

// Counts returns the numbers of waiting workloads, nominated ones included, and of
// started gangs.
func (s *State) Counts() (waiting, started int) { return s.waiting.Len(), len(s.started) }

// due reports whether the NextAt of the last decision has come.
func (s *State) due(now time.Time) bool { return !s.nextAt.IsZero() && !now.Before(s.nextAt) }

func (w *Waiting) nomination(s *State) *nomination {
	i := slices.IndexFunc(s.nominations, func(n *nomination) bool { return n.waiting == w })
	if i < 0 {
		return nil
	}
	return s.nominations[i]
}

// firstWaiting returns the first waiting workloads over all queues, nominated ones
// excepted.
func (s *State) firstWaiting(limit int) []*Waiting {
	waiting := make([]*Waiting, 0, s.waiting.Len())
	for w := range s.waiting.All() {
		if w.nomination(s) == nil {
			waiting = append(waiting, w)
		}
	}
	slices.SortFunc(waiting, before)
	return waiting[:min(limit, len(waiting))]
}

// fleet returns the nodes of a cluster, which may have none.
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
