package state

import (
	"fmt"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
)

// Queue is a queue's settings.
type Queue struct {
	Name string
	// Namespaces that its workloads may use; the first is the default.
	Namespaces []string
	Strategy   string
	// Rules of its workloads' lives.
	Rules workload.Rules
}

// State is the memory of one leader during its term. It has the entry points: inputs,
// Decide, Flush, and queries. What it is made of is in doc.go.
type State struct {
	*lifecycle
	sizing    sizing
	healing   healing
	idling    idling
	recovery  recovery
	deadlines deadlines

	limits Limits
	// watchers and dispatchers are the epochs of those whose word counts, by
	// cluster.
	watchers, dispatchers map[string]int64
	version               int64 // of the ledger, with all that has been flushed
	// catchingUp: not all that was observed before the term has been applied.
	catchingUp bool
	begun      time.Time // when it was
	// readAgain: the message that is taken in was read before in the term.
	readAgain bool
	// silentAfter is the argument of SetSilentAfter.
	silentAfter time.Duration
	permissions permissions
	failedOver  failedOver
	// distress is what the reasons of the gangs in each cluster show of it.
	distress map[string]distress
	// unread are Stored.Unread.
	unread []Quarantined
	// lacking has since when gangs are in the Demand whose flavors take turns.
	lacking map[workload.ID]time.Time
}

// Stored is what a state starts from, as read from Postgres.
type Stored struct {
	Queues []Queue
	// Policy is quota, cohorts and the rest of the policy, valid. A queue that it
	// does not name is a ClusterQueue without quota.
	Policy quota.Config
	// PastUsage of the ClusterQueues, as far as fair sharing counts it.
	PastUsage []quota.PastUsage `json:",omitempty"`
	// Learned is what was learned of the cost of evictions.
	Learned   []admission.Learned `json:",omitempty"`
	Workloads []StoredWorkload    // live ones
	// Expected is about how many workloads Restore will bring, for which room is made.
	Expected  int
	Nodes     []StoredNode
	LastOrder int64
	Version   int64 // of the ledger
	// Unread are the live workloads of which the database refuses to read the row. Those that
	// hold places are among Workloads all the same, with what else is stored of them.
	Unread []Quarantined `json:"-"`
	// MaxEvent is the size of the largest event that the bus takes, in bytes.
	MaxEvent int64
	// NoCertificates: the certificates of events are not read, as in a played world.
	NoCertificates bool `json:"-"`
	// Victims is the order in which gangs are evicted, another one in simulations alone.
	Victims admission.VictimOrder `json:"-"`
}

// StoredWorkload is a live workload with its place in the order of submission.
type StoredWorkload struct {
	workload.Record
	Order int64
	// Asked are the last requests that were taken in for it; nil before the first.
	Asked *workload.Asked `json:",omitempty"`
	// HeardAgain is when its cluster was last heard again after a silence; zero for never.
	HeardAgain time.Time `json:",omitzero"`
}

// StoredNode is a node with the version of its observation.
type StoredNode struct {
	capacity.Node
	Version event.Version
	Present bool
}

// New returns the state of a term.
func New(epoch int64, stored Stored) *State {
	tree, err := quota.New(PolicyOf(stored.Queues, stored.Policy))
	if err != nil {
		panic(fmt.Sprintf("a policy that is not valid was stored: %v", err)) // what is stored has been checked
	}
	l := &lifecycle{
		tables: newTables(tree, stored), removals: removals{removing: map[workload.ID]bool{}},
		inquiries: inquiries{epoch: epoch, asked: map[inquirySubject]*inquiry{}, heard: heard{}, pauses: map[Part]pause{}},
		epoch:     epoch, lastOrder: stored.LastOrder, maxEvent: stored.MaxEvent, noCertificates: stored.NoCertificates, staleReasons: map[workload.ID]*entry{},
		asking: asking{}, checked: checked{}, returning: map[workload.ID]time.Time{},
	}
	l.admission.OrderVictims(stored.Victims)
	s := &State{
		lifecycle: l, sizing: sizing{l}, idling: idling{l}, recovery: recovery{l},
		watchers: map[string]int64{}, dispatchers: map[string]int64{}, version: stored.Version, permissions: permissions{}, failedOver: failedOver{}, distress: map[string]distress{},
		unread: stored.Unread,
	}
	s.healing = healing{l, &s.sizing}
	s.deadlines = deadlines{l, &s.healing, &s.idling}
	for _, queue := range stored.Queues {
		s.queues[queue.Name] = queue
	}
	for _, n := range stored.Nodes {
		s.insertNode(n)
	}
	for _, w := range stored.Workloads {
		s.insert(w)
	}
	for key := range s.nodes {
		s.syncNode(key)
	}
	s.admission.SetPastUsage(stored.PastUsage)
	s.admission.SetLearned(stored.Learned)
	s.forgetChanges() // reading is no change
	return s
}

// CatchUp reports that a term begins, and what was observed before it is still to be
// taken in. Until BeginDecisions time does nothing to workloads: a place that is
// reserved meanwhile, for pods that lost theirs, might be one that a pod of which
// the state does not know yet has taken, and Postgres would refuse the commit.
func (s *State) CatchUp() { s.catchingUp = true }

// BeginDecisions ends CatchUp: everything that was observed before the term is known. It
// marks the rows of all nodes as changed, because the stored sums of pods outside any
// reservation are of the last term, which may have ended before it observed their end.
//
// It also schedules the replacement of lost places. The last term may have stored that a
// node is lost and ended before it replaced the places there. Its timers are gone, and
// the node's observation comes again as an old one, which changes nothing.
//
// Clusters that were silent before the term are so from its first decision on.
func (s *State) BeginDecisions(now time.Time) {
	s.catchingUp, s.begun = false, now
	s.admission.RequireNamespaces()
	for _, key := range s.nodeKeys() {
		s.changed.node(key)
		s.healing.scheduleReplacement(key, now)
	}
	s.noteSilentClusters(now)
}

// CatchingUp reports whether what was observed before the term is still being taken in.
func (s *State) CatchingUp() bool { return s.catchingUp }

// Unread returns the live workloads that could not be read when the state was loaded.
func (s *State) Unread() []Quarantined { return s.unread }

// Counts returns how many workloads wait and how many are live beyond waiting.
func (s *State) Counts() (waiting, started int) {
	return s.live.Len() - s.started, s.started
}
