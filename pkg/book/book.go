// Package book is queue-manager's memory: queues, live workloads, nodes and
// reservations, and the rules by which an input changes them. It collects what
// changed, for one transaction to write.
//
// It is pure: no context, clock, logger or I/O; the time is an argument. It is
// not the truth, which is Postgres: when a transaction fails the book is thrown
// away and read anew. It is not safe for concurrent use.
//
// Queue-manager drives it with messages; package scenario drives it with the
// events of a file, so that what users test is what runs.
//
// Every input may come twice, late, or out of order. Submissions are told apart
// by id and digest, observations by their version, statuses by the attempt they
// speak of; what is old changes nothing.
package book

import (
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/admission"
	"muster.dev/muster/pkg/capacity"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/quota"
	"muster.dev/muster/pkg/resource"
	"muster.dev/muster/pkg/roster"
	"muster.dev/muster/pkg/workload"
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

// entry is a live workload: one that is not final, or still holds capacity. A
// million of them may wait, so what only one that has been admitted needs is apart.
type entry struct {
	workload.Record
	order int64
	// course is nil exactly while it waits.
	*course
}

// course is what is known of the present attempt of a workload that has been
// admitted, beside its record. It is not stored.
type course struct {
	due       time.Time // when it is looked at, see nextMoment
	slowSince time.Time // when it was last noted that it starts slowly
	moveAt    time.Time // when its lost places are replaced; zero while it has all
	broken    trouble
	fixed     bool          // its places cannot be changed: the database refused that
	head      event.GangPod // as seen last
	// sizes of its worker groups, as the dispatcher sees them, and how many places
	// of each are to be kept; nil while it has not.
	sizes, keeps map[string]int
	sizesSaid    time.Time // when it said so last
	created      []string  // UIDs of what the dispatcher created, as far as it said
	grows        *growth   // nil while it does not ask for more places
	yield        *yield    // nil while it gives none up
	// idleSince is zero while it is not idle; lastUsed while nobody says when it was
	// used. saidUse is a time to come that was said.
	idleSince, lastUsed, saidUse time.Time
	// askAt is when the dispatcher is asked whether it is gone; zero while it is to
	// stay.
	askAt time.Time
	// commandedAway: the last command was to remove what exists of it.
	commandedAway bool
}

// node is a node as last observed, and what gangs take of it.
type node struct {
	capacity.Node
	version  event.Version
	present  bool
	reserved resource.List
	// strays are pods of gangs beyond what is reserved for them here.
	strays map[workload.ID]resource.List
	// notReadySince is zero while the node is ready; overdue says that the grace
	// since then is over.
	notReadySince time.Time
	overdue       bool
	// holders are the workloads that have pods reserved here, and how many.
	holders map[workload.ID]int
}

// used is what pods outside any reservation take.
func (n *node) used() resource.List {
	used := n.Unmanaged
	for _, stray := range n.strays {
		used = used.Plus(stray)
	}
	return used
}

// strayed is what strays take of the node.
func (n *node) strayed() resource.List {
	strayed := resource.List{}
	for _, stray := range n.strays {
		strayed = strayed.Plus(stray)
	}
	return strayed
}

// gangKey names a workload's pods in one cluster; an attempt may begin in one
// while the last is still going in another.
type gangKey struct {
	cluster  string
	workload workload.ID
}

// gang is what was last seen of a workload's pods.
type gang struct {
	version event.Version
	// seen are all pods with the workload's labels, of the chains; pods are its own,
	// others are not.
	seen, pods, others []event.GangPod
	chains             []event.PodChain
	said               time.Time       // when a watcher said so
	strayOn            map[string]bool // names of nodes that have strays of it
	beside             int             // pods on other nodes than are reserved for them
}

// Book is the memory of one leader during its term.
type Book struct {
	epoch   int64
	queues  map[string]Queue
	policy  quota.Config
	limits  Limits
	liveIn  map[string]int // by queue
	live    *roster.Roster[workload.ID, entry]
	started int // of the live, those that do not wait
	objects objects
	nodes   map[admission.NodeKey]*node
	gangs   map[gangKey]*gang
	told    told
	// watchers and dispatchers are the epochs of those whose word counts, by
	// cluster.
	watchers, dispatchers map[string]int64
	admission             *admission.State
	lastOrder             int64
	version               int64 // of the ledger, with all that has been taken
	messages              int   // numbers the messages of the term
	// maxEvent is the size of the largest event that can be sent, in bytes.
	maxEvent int64

	changed *changed
	// lazy are the workloads whose stored reason differs in amounts only.
	lazy map[workload.ID]*entry
	// due are the moments at which workloads are looked at.
	due moments
	// notReady are the nodes that are there and not ready.
	notReady map[admission.NodeKey]bool
	grace    time.Duration // of nodes that are not ready, as of the last Tick
	// catchingUp: not all that was observed before the term has been taken in.
	catchingUp bool
	// askFor is how long answers are waited for, inquiries what was asked, and asked
	// how often in the term.
	askFor    time.Duration
	inquiries map[subject]*inquiry
	asked     int
	// aside are the workloads, and asideNodes the nodes, of which the database
	// refuses to store something.
	aside      map[workload.ID]*Aside
	asideNodes map[admission.NodeKey]bool
	// beside counts the pods on other nodes than are reserved for them.
	beside struct{ now, ever int }
	// removing are the waiting workloads of which an attempt that the ledger did not
	// know is removed, unknown what is removed and has no workload. See Ahead.
	removing map[workload.ID]bool
	unknown  map[gangKey]*event.GangDesired
}

// Stored is what a book starts from, as read from Postgres.
type Stored struct {
	Queues []Queue
	// Policy is quota, cohorts and the rest of the policy, valid. A queue that it
	// does not name is a ClusterQueue without quota.
	Policy    quota.Config
	Workloads []StoredWorkload // live ones
	// Expected is about how many workloads Restore will bring, for which room is made.
	Expected  int
	Nodes     []StoredNode
	LastOrder int64
	Version   int64 // of the ledger
	// MaxEvent is the size of the largest event that the bus takes, in bytes.
	MaxEvent int64
}

// StoredWorkload is a live workload with its place in the order of submission.
type StoredWorkload struct {
	workload.Record
	Order int64
}

// StoredNode is a node with the version of its observation.
type StoredNode struct {
	capacity.Node
	Version event.Version
	Present bool
}

// New returns the book of a term.
func New(epoch int64, stored Stored) *Book {
	tree, err := quota.New(PolicyOf(stored.Queues, stored.Policy))
	if err != nil {
		panic(fmt.Sprintf("a policy that is not valid was stored: %v", err)) // what is stored has been checked
	}
	b := &Book{
		epoch: epoch, queues: map[string]Queue{}, policy: stored.Policy, liveIn: map[string]int{}, live: roster.New(stored.Expected, func(e *entry) workload.ID { return e.ID }), objects: objects{},
		nodes: map[admission.NodeKey]*node{}, gangs: map[gangKey]*gang{}, told: newTold(),
		watchers: map[string]int64{}, dispatchers: map[string]int64{},
		admission: admission.NewState(tree), lastOrder: stored.LastOrder, version: stored.Version, maxEvent: stored.MaxEvent, changed: newChanged(),
		lazy: map[workload.ID]*entry{}, notReady: map[admission.NodeKey]bool{},
		inquiries: map[subject]*inquiry{},
		aside:     map[workload.ID]*Aside{}, asideNodes: map[admission.NodeKey]bool{},
		removing: map[workload.ID]bool{},
	}
	b.admission.Reserve(stored.Expected)
	for _, queue := range stored.Queues {
		b.queues[queue.Name] = queue
	}
	for _, n := range stored.Nodes {
		b.insertNode(n)
	}
	for _, w := range stored.Workloads {
		b.insert(w)
	}
	for key := range b.nodes {
		b.offer(key)
	}
	b.changed = newChanged() // reading is no change
	return b
}

// CatchUp says that a term begins, and what was observed before it is still to be
// taken in. Until RewriteNodes time does nothing to workloads: a place that is
// reserved meanwhile, for pods that lost theirs, might be one that a pod of which
// the book does not know yet has taken, and Postgres would refuse the commit.
func (b *Book) CatchUp() { b.catchingUp = true }

// RewriteNodes has the rows of all nodes written anew, once all that was observed
// before the term is known. The stored sums of pods outside any reservation are of
// the last term, which may have ended before it saw them go.
func (b *Book) RewriteNodes() {
	b.catchingUp = false
	for key := range b.nodes {
		b.changed.node(key)
	}
}

// Counts returns how many workloads wait and how many are live beyond waiting.
func (b *Book) Counts() (waiting, started int) {
	return b.live.Len() - b.started, b.started
}

// PolicyOf completes a policy by the queues that it does not name: each is a
// ClusterQueue without quota, and a LocalQueue in each of its namespaces.
func PolicyOf(queues []Queue, policy quota.Config) quota.Config {
	named, local := map[string]bool{}, map[[2]string]bool{}
	for _, q := range policy.ClusterQueues {
		named[q.Name] = true
	}
	for _, l := range policy.LocalQueues {
		local[[2]string{l.Namespace, l.Name}] = true
	}
	policy.ClusterQueues, policy.LocalQueues = slices.Clip(policy.ClusterQueues), slices.Clip(policy.LocalQueues)
	for _, q := range queues {
		for _, namespace := range q.Namespaces {
			if local[[2]string{namespace, q.Name}] {
				continue
			}
			if !named[q.Name] {
				named[q.Name] = true
				policy.ClusterQueues = append(policy.ClusterQueues, quota.ClusterQueue{Name: q.Name, Strategy: q.Strategy})
			}
			policy.LocalQueues = append(policy.LocalQueues, quota.LocalQueue{Namespace: namespace, Name: q.Name, ClusterQueue: q.Name})
		}
	}
	return policy
}

// enqueue has a workload wait. Whether gangs were being evicted for it, in an
// earlier term, is read from its reason.
func (b *Book) enqueue(e *entry) { b.enqueueAs(e, false) }

// enqueueAs puts a workload into its queue; told says that its reason is stored.
func (b *Book) enqueueAs(e *entry, told bool) {
	if isRemoved(e) {
		b.removing[e.ID] = true
		return
	}
	b.admission.Enqueue(admission.Waiting{
		Workload: &e.Workload, Order: e.order, NotBefore: e.NotBefore, Told: told,
		Since: e.Times.Submitted, RunTime: b.runTime(e),
		Claiming: e.Reason != nil && e.Reason.Kind == workload.ReasonWaitingForEviction,
	})
}

// runTime is the declared run time of a workload, as its queue completes it.
func (b *Book) runTime(e *entry) time.Duration { return b.queues[e.Queue].Rules.Declared(e.Life) }

// start tells admission of a gang that was admitted in an earlier term.
func (b *Book) start(e *entry) {
	b.admission.Start(admission.Started{
		Workload: &e.Workload, Order: e.order, Cluster: e.Cluster, Placements: e.Placements, Flavors: e.Flavors,
		Admitted: e.Times.Admitted, RunTime: b.runTime(e), Going: tearingDown(e),
	})
}

// begin notes that a workload waits no more, and wait that it does so again.
func (b *Book) begin(e *entry) {
	e.course = &course{}
	b.started++
}

func (b *Book) wait(e *entry) {
	e.course = nil
	b.started--
}

// offer shows a node to admission, or takes it away.
func (b *Book) offer(key admission.NodeKey) {
	n := b.nodes[key]
	if n == nil || !n.present || b.asideNodes[key] {
		b.admission.RemoveNode(key)
		return
	}
	b.admission.SetExtra(key, n.strayed())
	b.admission.SetNode(n.Node)
}

// charge adds (sign 1) or takes back (sign -1) what is reserved for a workload.
func (b *Book) charge(e *entry, sign int64) {
	for _, p := range e.Placements {
		key := admission.NodeKey{Cluster: e.Cluster, Name: p.Node}
		n := b.nodes[key]
		if n == nil {
			continue // the foreign key of reservations keeps this from happening
		}
		n.reserved = n.reserved.Plus(e.requests(p.PodSet).Times(sign * int64(p.Pods)))
		if n.holders[e.ID] += int(sign) * p.Pods; n.holders[e.ID] == 0 {
			delete(n.holders, e.ID)
		}
		if !n.present { // it may be dropped with its last reservation
			b.changed.node(key)
		}
	}
}

// requests returns the request of one pod of a pod set.
func (e *entry) requests(podSet string) resource.List {
	for i := range e.PodSets {
		if e.PodSets[i].Name == podSet {
			return e.PodSets[i].Template.Requests
		}
	}
	return nil
}
