package sim

import (
	"strings"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// attemptKey names an attempt of a workload.
type attemptKey struct {
	id      workload.ID
	attempt int
}

// checker holds the run against the promises. It knows the truth: the ledger and
// the cluster as they are, whatever the services believe.
type checker struct {
	w         *World
	breach    *Breach
	decisions int // that were made twice and compared
	// promised are the workloads whose submitters have an event that reports them as queued.
	promised map[workload.ID]bool
	// newest command on each subject that NATS has had since it last lost any.
	newest  map[string]*event.GangCommand
	objects map[attemptKey]int // how often created
	// createdAt is when last, lost are those of time that the ledger has lost.
	createdAt map[attemptKey]time.Time
	lost      map[attemptKey]*lostAttempt
	whole     map[attemptKey]bool
	proven    map[attemptKey]bool            // each of whose pod sets has had a pod
	roomy     map[attemptKey]bool            // for whose pods the quotas had room when they were read
	ready     map[attemptKey]map[string]bool // pods that have ever been, by uid
	partial   map[attemptKey]time.Time       // since when bound in part
	before    map[admission.NodeKey]resource.List
	nominated map[workload.ID]bool // those for whom gangs were being evicted before a commit
	attempts  map[workload.ID]int  // that they were in before a commit
	// was are the records before a commit, requeues the attempts that operators asked to
	// take down.
	was      map[workload.ID]workload.Record
	requeues map[attemptKey]bool
	blind    map[workload.ID]bool // of which the term had not read what was created
	read     map[readKey]int64    // the version for which a term had read that
	made     map[string]int       // what came about, by name
	ran      map[attemptKey]bool  // attempts that began to run
	dirty    bool
	// sizes that gangs were given, large since when one has places for more pods than
	// it wants, within since when one waits that is within nominal quota.
	sizes  map[attemptKey]map[int64]bool
	large  map[attemptKey]time.Time
	within map[workload.ID]time.Time
	// nominations are those that have had one, by attempt, and have not started since;
	// nominatedOn is what they were made on.
	nominations map[workload.ID]int
	nominatedOn ground
	// ends are the workloads whose ends messages report, by the first byte of a message; none of others.
	ends map[*byte]workload.ID
	// reported is when NATS stored the last report of the capacity-watcher.
	reported time.Time
}

func newChecker(w *World) *checker {
	return &checker{
		w: w, promised: map[workload.ID]bool{}, newest: map[string]*event.GangCommand{}, objects: map[attemptKey]int{},
		requeues: map[attemptKey]bool{}, createdAt: map[attemptKey]time.Time{}, lost: map[attemptKey]*lostAttempt{},
		whole: map[attemptKey]bool{}, proven: map[attemptKey]bool{}, roomy: map[attemptKey]bool{}, ready: map[attemptKey]map[string]bool{}, partial: map[attemptKey]time.Time{},
		ran: map[attemptKey]bool{}, made: map[string]int{}, read: map[readKey]int64{}, sizes: map[attemptKey]map[int64]bool{}, large: map[attemptKey]time.Time{}, within: map[workload.ID]time.Time{}, nominations: map[workload.ID]int{},
		ends: map[*byte]workload.ID{},
	}
}

// after looks at the world after an event that has changed the ledger or where pods
// are.
func (c *checker) after() {
	if !c.dirty {
		return
	}
	c.dirty = false
	if !c.w.disk.settled() {
		return // what ran in the lost time still does
	}
	c.checkRoom()
}

// committing looks at a commit before it is made.
func (c *checker) committing(changes state.Changes) {
	l := c.w.disk
	if changes.Epoch != l.epoch {
		c.w.breach("G4", "a leader of epoch %d wrote, the present one is %d", changes.Epoch, l.epoch)
	}
	if changes.Version != l.version+1 {
		c.w.breach("G4", "version %d was committed after %d", changes.Version, l.version)
	}
	for _, a := range changes.Added {
		if _, again := l.record(a.ID); again {
			c.w.breach("G4", "workload %s was added twice", c.w.submits.nameOf(a.ID))
		}
	}
	c.before, c.nominated, c.attempts = l.reserved(), map[workload.ID]bool{}, map[workload.ID]int{}
	c.blind, c.was = map[workload.ID]bool{}, map[workload.ID]workload.Record{}
	for _, r := range l.live {
		c.was[r.ID] = r.Record
		c.attempts[r.ID] = r.Attempt
		c.blind[r.ID] = !c.hadRead(changes, attemptKey{r.ID, r.Attempt})
		if isNominated(r.Record) {
			c.nominated[r.ID] = true
		}
	}
}

// committed looks at the ledger after a commit of a term that keeps some out of
// decisions.
func (c *checker) committed(changes state.Changes, kept func(workload.ID) bool) {
	w, l := c.w, c.w.disk
	c.dirty = true
	names := map[string]workload.ID{}
	for _, r := range l.inOrder() {
		placed := 0
		for _, p := range r.Placements {
			placed += p.Pods
		}
		switch name := w.submits.nameOf(r.ID); {
		case r.Holding && placed != r.Pods(), !r.Holding && placed != 0:
			w.breach("G1", "%s is %s with %d of %d pods placed", name, r.Phase, placed, r.Pods())
		case names[r.Kind+r.Namespace+r.Name] != "":
			w.breach("G4", "two live workloads are called %s", r.Name)
		}
		names[r.Kind+r.Namespace+r.Name] = r.ID
		if _, twice := l.archive[r.ID]; twice {
			w.breach("G4", "%s is live and has ended", w.submits.nameOf(r.ID))
		}
	}
	for key, reserved := range l.reserved() {
		c.checkNode(key, reserved)
	}
	for _, id := range changes.Freed {
		c.checkFreed(id)
	}
	for _, r := range changes.Updated {
		c.checkRunning(r)
	}
	for id := range c.promised {
		if _, known := l.record(id); !known {
			w.breach("G3", "%s was reported as queued and is not in the ledger", w.submits.nameOf(id))
		}
	}
	c.checkOrder(changes, kept)
	c.checkScaled(changes)
	c.checkKept(changes, kept)
	c.checkAskOrder(kept)
	c.checkOperated(changes)
}

// checkNode is the guard of the ledger: what is reserved may only grow within what
// is allocatable and not used by others.
func (c *checker) checkNode(key admission.NodeKey, reserved resource.List) {
	n, known := c.w.disk.nodes[key]
	for _, name := range reserved.Names() {
		if reserved[name] <= c.before[key][name] {
			continue
		}
		if !known || reserved[name]+n.Used[name] > n.Allocatable[name] {
			c.w.breach("G2", "%d of %s are reserved on %s beside %d used, and there are %d", reserved[name], name, key.Name, n.Used[name], n.Allocatable[name])
		}
	}
}

// checkFreed: capacity is freed when pods are gone, in the cluster itself.
func (c *checker) checkFreed(id workload.ID) {
	for _, p := range c.w.cluster.podsOf(func(p *pod) bool { return p.workload == id && p.attempt <= c.attempts[id] }) {
		if p.node != "" {
			c.w.breach("G5", "the places of %s were freed while pod %s is on %s", c.w.submits.nameOf(id), p.name, p.node)
		}
	}
}

// checkOrder: in a strict queue no gang passes one that waits and may start, unless
// others were evicted for it. One that is held or waits for nodes does not stop its queue. Who waits and is kept out of decisions, because the
// database refused what was decided of it, does not stop its queue.
func (c *checker) checkOrder(changes state.Changes, kept func(workload.ID) bool) {
	for _, reserved := range changes.Reserved {
		x := c.w.disk.live[reserved.Workload]
		if x == nil || x.Queue != "strict" || c.nominated[x.ID] || asksForNodes(c.was[x.ID]) { // it asked when those before it could not
			continue
		}
		c.checkFirst(x, x.Times.Admitted, "was admitted", kept)
	}
}

// checkAskOrder: in a strict queue no gang asks for nodes past one that waits and could ask.
func (c *checker) checkAskOrder(kept func(workload.ID) bool) {
	for _, x := range c.w.disk.inOrder() {
		if x.Queue != "strict" || c.nominated[x.ID] || !asksForNodes(x.Record) {
			continue
		}
		if before := c.was[x.ID]; asksForNodes(before) && before.Provisioning.Number == x.Provisioning.Number {
			continue
		}
		c.checkFirst(x, x.Provisioning.Since, "asked for nodes", kept)
	}
}

// checkFirst: no gang that could start at that time waits in the queue before this one.
func (c *checker) checkFirst(x *row, at time.Time, did string, kept func(workload.ID) bool) {
	for _, y := range c.w.disk.inOrder() {
		if y.Queue == x.Queue && y.Phase == workload.Queued && y.Hold == nil && !waitsForRemoval(y.Record) && !asksForNodes(y.Record) && comesBefore(y, x) && !y.NotBefore.After(at) &&
			!(c.w.disk.blamed[y.ID] && kept(y.ID)) {
			c.w.breach("G6", "%s %s past %s, which waits before it in a strict queue", c.w.submits.nameOf(x.ID), did, c.w.submits.nameOf(y.ID))
		}
	}
}

// waitsForRemoval reports whether a gang cannot start, because what is left of it of a
// time that the ledger has lost is there.
func waitsForRemoval(r workload.Record) bool {
	return r.Cluster != "" && r.Reason != nil && r.Reason.Kind == workload.ReasonRestored
}

// stored looks at a message that NATS has taken: on the subject of a workload's
// command an older one never comes last.
func (c *checker) stored(stream string, m bus.Delivery) {
	if stream == bus.CapacityStream && strings.HasPrefix(m.Subject, "muster.capacity."+clusterName+".") {
		c.reported = m.Stored
	}
	if stream != bus.DispatchStream {
		return
	}
	command, ok := payloadOf(m).(*event.GangCommand)
	if !ok {
		c.w.breach("G3", "a command cannot be read: %s", m.Data)
		return
	}
	before := c.newest[m.Subject]
	if before != nil && before.Supersedes(command) {
		c.w.breach("G4", "command %s of epoch %d, order %d for %s took the place of %s of epoch %d, order %d", command.State, command.Epoch,
			command.Order, c.w.submits.nameOf(command.Workload), before.State, before.Epoch, before.Order)
	}
	c.newest[m.Subject] = command
}

// forgetMessages starts again after NATS has lost some.
func (c *checker) forgetMessages() { c.newest = map[string]*event.GangCommand{} }
