package state

import (
	"cmp"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/index"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// tables is what the state knows: queues, live workloads, nodes, and observed pods, with
// what is reserved for whom. It has no rules about the lives of workloads.
type tables struct {
	queues  map[string]Queue
	policy  quota.Config
	liveIn  map[string]int // by queue
	live    *index.Index[workload.ID, entry]
	started int // of the live, those that do not wait
	objects objects
	// lastAsked are the last requests for the live workloads of which something was asked.
	lastAsked map[workload.ID]workload.Asked
	nodes     map[admission.NodeKey]*node
	// notReady are the nodes that are there and not ready.
	notReady map[admission.NodeKey]bool
	grace    time.Duration // of nodes that are not ready, as of the last Tick
	gangs    map[gangKey]*gang
	// namespaces that clusters have reported.
	namespaces observedNamespaces
	observed   observedLimits
	// misplacedPods counts the pods on other nodes than are reserved for them.
	misplacedPods struct{ now, ever int }
	// quarantined are the workloads, and quarantinedNodes the nodes, of which the database
	// refuses to store something.
	quarantined      map[workload.ID]*Quarantined
	quarantinedNodes map[admission.NodeKey]bool
	// quarantinedScopes are those of quota in which nothing can be used for a while.
	quarantinedScopes map[string]*Quarantined
	// admission is what package admission knows of all this.
	admission *admission.State
	changed   *changeSet
}

func newTables(tree *quota.Tree, stored Stored) tables {
	t := tables{
		queues: map[string]Queue{}, policy: stored.Policy, liveIn: map[string]int{},
		live:    index.New(stored.Expected, func(e *entry) workload.ID { return e.ID }),
		objects: objects{}, lastAsked: map[workload.ID]workload.Asked{}, nodes: map[admission.NodeKey]*node{}, notReady: map[admission.NodeKey]bool{},
		gangs: map[gangKey]*gang{}, namespaces: observedNamespaces{}, observed: newObservedLimits(),
		quarantined: map[workload.ID]*Quarantined{}, quarantinedNodes: map[admission.NodeKey]bool{}, quarantinedScopes: map[string]*Quarantined{},
		admission: admission.NewState(tree), changed: newChangeSet(),
	}
	t.admission.Preallocate(stored.Expected)
	return t
}

// rules are those of the workload's queue, with what it asks for itself.
func (t *tables) rules(e *entry) workload.Rules { return t.queues[e.Queue].Rules.For(e.Life) }

// runTime is the declared run time of a workload, as its queue completes it.
func (t *tables) runTime(e *entry) time.Duration { return t.queues[e.Queue].Rules.Declared(e.Life) }

// beginAttempt counts a workload as started; endAttempt returns it to those that wait.
func (t *tables) beginAttempt(e *entry) {
	e.attemptState = &attemptState{}
	t.started++
}

func (t *tables) endAttempt(e *entry) {
	e.attemptState = nil
	t.started--
}

// restoreStarted gives admission a gang that was admitted in an earlier term.
func (t *tables) restoreStarted(e *entry) {
	t.admission.Start(admission.Started{
		Workload: &e.Workload, Order: e.order, Cluster: e.Cluster, Placements: e.Placements, Flavors: e.Flavors,
		Admitted: e.Times.Admitted, RunTime: t.runTime(e), Terminating: tearingDown(e), Progress: t.progressOf(e),
	})
}

// progressOf is what admission knows of the work of a started gang.
func (t *tables) progressOf(e *entry) admission.Progress {
	p := admission.Progress{
		Running: e.Phase == workload.Running, Checkpoint: e.Saved().Last(e.Attempt),
		Interval: time.Duration(e.Saved().Interval(t.rules(e).CheckpointInterval)),
	}
	if e.Times.Running.After(e.Times.Admitted) {
		p.Startup = e.Times.Running.Sub(e.Times.Admitted)
	}
	return p
}

// updateProgress tells admission what is known of the gang's work now.
func (t *tables) updateProgress(e *entry) { t.admission.SetProgress(e.ID, t.progressOf(e)) }

// updateReserved adds (sign 1) or takes back (sign -1) what is reserved for a workload.
func (t *tables) updateReserved(e *entry, sign int64) {
	for _, p := range e.Placements {
		key := admission.NodeKey{Cluster: e.Cluster, Name: p.Node}
		n := t.nodes[key]
		if n == nil {
			continue // the foreign key of reservations keeps this from happening
		}
		n.reserved = n.reserved.Plus(e.requests(p.PodSet).Times(sign * int64(p.Pods)))
		if n.holders[e.ID] += int(sign) * p.Pods; n.holders[e.ID] == 0 {
			delete(n.holders, e.ID)
		}
		if !n.present { // it may be dropped with its last reservation
			t.changed.node(key)
		}
	}
}

func (t *tables) inOrder() []*entry {
	return slices.SortedFunc(t.live.All(), func(x, y *entry) int { return cmp.Compare(x.order, y.order) })
}

// startedInOrder is inOrder without those who wait: there may be a million of them.
func (t *tables) startedInOrder() []*entry {
	started := make([]*entry, 0, t.started)
	for e := range t.live.All() {
		if e.attemptState != nil {
			started = append(started, e)
		}
	}
	slices.SortFunc(started, func(x, y *entry) int { return cmp.Compare(x.order, y.order) })
	return started
}

// refused reports whether nothing may be written of a workload that is not live.
func (t *tables) refused(id workload.ID) bool {
	a := t.quarantined[id]
	return a != nil && a.Level == QuarantineFrozen && t.live.Get(id) == nil
}

// frozen reports whether nothing of a workload may be written.
func (t *tables) frozen(e *entry) bool {
	a := t.quarantined[e.ID]
	return a != nil && (a.Level == QuarantineFrozen || a.Level == QuarantineFailed && e.attemptState != nil)
}

// quotaHold returns the entry of the quota that keeps a waiting workload from being admitted; nil
// for none.
func (t *tables) quotaHold(e *entry) (hold *Quarantined) {
	if len(t.quarantinedScopes) == 0 {
		return nil
	}
	for _, scope := range t.admission.QueueOf(&e.Workload).Scopes() {
		if a := t.quarantinedScopes[scope]; a != nil && (hold == nil || a.Until.After(hold.Until)) {
			hold = a
		}
	}
	return hold
}

// inOrder lists the wanted ones by submission. It sorts no others: a tick comes often, and
// most have nothing to do in it.
func inOrder(all map[workload.ID]*entry, wanted func(*entry) bool) (listed []*entry) {
	for _, e := range all {
		if wanted(e) {
			listed = append(listed, e)
		}
	}
	slices.SortFunc(listed, func(x, y *entry) int { return cmp.Compare(x.order, y.order) })
	return listed
}
