package sim

import (
	"fmt"
	"slices"
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
	newest  map[string]*event.GangDesired
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
	// reported is when NATS stored the last report of the capacity-watcher.
	reported time.Time
	// reportLost: NATS has lost messages since.
	reportLost bool
}

func newChecker(w *World) *checker {
	return &checker{
		w: w, promised: map[workload.ID]bool{}, newest: map[string]*event.GangDesired{}, objects: map[attemptKey]int{},
		requeues: map[attemptKey]bool{}, createdAt: map[attemptKey]time.Time{}, lost: map[attemptKey]*lostAttempt{},
		whole: map[attemptKey]bool{}, proven: map[attemptKey]bool{}, roomy: map[attemptKey]bool{}, ready: map[attemptKey]map[string]bool{}, partial: map[attemptKey]time.Time{},
		ran: map[attemptKey]bool{}, made: map[string]int{}, read: map[readKey]int64{}, sizes: map[attemptKey]map[int64]bool{}, large: map[attemptKey]time.Time{}, within: map[workload.ID]time.Time{}, nominations: map[workload.ID]int{},
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
// others were evicted for it. One that is held does not stop its queue. Who waits and is kept out of decisions, because the
// database refused what was decided of it, does not stop its queue.
func (c *checker) checkOrder(changes state.Changes, kept func(workload.ID) bool) {
	for _, reserved := range changes.Reserved {
		x := c.w.disk.live[reserved.Workload]
		if x == nil || x.Queue != "strict" || c.nominated[x.ID] {
			continue
		}
		for _, y := range c.w.disk.inOrder() {
			if y.Queue == x.Queue && y.Phase == workload.Queued && y.Hold == nil && !waitsForRemoval(y.Record) && comesBefore(y, x) && !y.NotBefore.After(x.Times.Admitted) &&
				!(c.w.disk.blamed[y.ID] && kept(y.ID)) {
				c.w.breach("G6", "%s was admitted past %s, which waits before it in a strict queue", c.w.submits.nameOf(x.ID), c.w.submits.nameOf(y.ID))
			}
		}
	}
}

// waitsForRemoval reports whether a gang cannot start, because what is left of it of a
// time that the ledger has lost is there.
func waitsForRemoval(r workload.Record) bool {
	return r.Cluster != "" && r.Reason != nil && r.Reason.Kind == workload.ReasonRestored
}

// checkRoom: on every node what gangs have or are nominated for is no more than there is,
// by the truth.
func (c *checker) checkRoom() {
	taken := map[string]map[workload.ID]resource.List{}
	charge := func(node string, id workload.ID, amount resource.List) {
		if taken[node] == nil {
			taken[node] = map[workload.ID]resource.List{}
		}
		taken[node][id] = taken[node][id].Plus(amount)
	}
	for _, p := range c.w.cluster.pods {
		if p.node != "" && p.workload != "" {
			charge(p.node, p.workload, p.requests)
		}
	}
	nominations := map[string]map[workload.ID]resource.List{}
	for _, r := range c.w.disk.live {
		for _, p := range r.Placements {
			if nominations[p.Node] == nil {
				nominations[p.Node] = map[workload.ID]resource.List{}
			}
			nominations[p.Node][r.ID] = nominations[p.Node][r.ID].Plus(r.requests[p.PodSet].Times(int64(p.Pods)))
		}
	}
	for name, n := range c.w.cluster.nodes {
		for _, amount := range []resource.Name{"nvidia.com/gpu", "cpu"} {
			var sum int64
			for id, have := range taken[name] {
				sum += max(have[amount], nominations[name][id][amount])
			}
			for id, nomination := range nominations[name] {
				if _, counted := taken[name][id]; !counted {
					sum += nomination[amount]
				}
			}
			if sum > n.Allocatable[amount] {
				c.w.breach("G2", "gangs have or are nominated for %d of %s on %s, which has %d", sum, amount, name, n.Allocatable[amount])
			}
		}
	}
}

// created looks at an object that was created.
func (c *checker) created(o *object) {
	w := c.w
	name := w.submits.nameOf(o.workload)
	for _, other := range w.cluster.objects {
		if other != o && other.workload == o.workload {
			w.breach("G4", "%s has two objects: %s of attempt %d and %s of attempt %d", name, other.name, other.attempt, o.name, o.attempt)
		}
	}
	key := attemptKey{o.workload, o.attempt}
	c.resized(o)
	c.objects[key]++
	if each := w.submits.by[o.workload]; c.objects[key] > 1 && (each == nil || !each.excused) && !c.forgotten(o) {
		w.breach("G4", "attempt %d of %s was created %d times", o.attempt, name, c.objects[key])
	}
	c.createdAt[key] = w.now
	delete(c.lost, key)
}

// excuse says that a user deleted an object of a workload: if that is in the very
// moment of its creation, it is created once more.
func (c *checker) excuse(id workload.ID) {
	if each := c.w.submits.by[id]; each != nil {
		each.excused = true
	}
}

// grown notes a gang whose pods are all there, or of whose sets each has one.
func (c *checker) grown(o *object) {
	there, sets := 0, map[string]bool{}
	for _, p := range c.w.cluster.podsOf(func(p *pod) bool { return p.owner == o.uid && p.workload == o.workload && !p.deleting }) {
		there++
		sets[p.set] = true
	}
	if there == 0 {
		return
	}
	key := attemptKey{o.workload, o.attempt}
	if there >= min(o.atStart, o.size()) {
		c.whole[key] = true
	}
	if !slices.ContainsFunc(o.sets, func(s workload.PodSet) bool { return s.Count > 0 && !sets[s.Name] }) {
		c.proven[key] = true
	}
}

// bound looks at a pod that was bound to a node.
func (c *checker) bound(p *pod) {
	c.dirty = true
	if p.workload == "" {
		return
	}
	name := c.w.submits.nameOf(p.workload)
	c.starts(p)
	for _, other := range c.w.cluster.pods {
		if other.workload == p.workload && other.attempt != p.attempt && other.node != "" {
			c.w.breach("G4", "%s runs pods of attempts %d and %d", name, other.attempt, p.attempt)
		}
	}
}

// stored looks at a message that NATS has taken: on the subject of a workload's
// command an older one never comes last.
func (c *checker) stored(stream string, m bus.Delivery) {
	if stream == bus.CapacityStream {
		c.reported, c.reportLost = m.Stored, false
	}
	if stream != bus.DispatchStream {
		return
	}
	command, ok := payloadOf(m).(*event.GangDesired)
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
func (c *checker) forgetMessages() { c.newest, c.reportLost = map[string]*event.GangDesired{}, true }

// partialFor bounds how long a gang may have some of its pods on nodes and not all:
// its ready deadline, and the time to tear it down.
const partialFor = 5 * time.Minute

// overdue looks at what must have happened by now.
func (c *checker) overdue() {
	w := c.w
	present := map[attemptKey]int{}
	for _, p := range w.cluster.pods {
		if p.workload != "" && p.node != "" {
			present[attemptKey{p.workload, p.attempt}]++
		}
	}
	for key := range c.partial {
		if present[key] == 0 {
			delete(c.partial, key)
		}
	}
	for key, pods := range present {
		each := w.submits.by[key.id]
		since, known := c.partial[key]
		switch {
		case each == nil || pods >= w.wholeAt(each):
			delete(c.partial, key)
		case !known:
			c.partial[key] = w.now
		case w.now.Sub(later(since, w.nemesis.last)) > partialFor:
			w.breach("G1", "%s has had %d of %d pods on nodes for %s", each.name, pods, w.wholeAt(each), w.now.Sub(since))
		}
	}
	c.overduePolicy()
	if quiet := w.now.Sub(later(w.nemesis.last, w.start.Add(faultsFor))); quiet > calmFor && len(w.disk.refused) == 0 {
		w.breach("G3", "%s after the last fault: %s", quiet, c.left())
	}
}

// wholeAt is how many pods a gang has when it is whole: those that it has places for
// and are wanted.
func (w *World) wholeAt(each *submission) int {
	pods := each.pods
	if r := w.disk.live[each.id]; r != nil && r.Holding {
		pods = r.Pods()
	}
	for _, o := range w.cluster.objects {
		if o.workload == each.id {
			pods = min(pods, o.size())
		}
	}
	return pods
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// left says what keeps the world from being done.
func (c *checker) left() string {
	w := c.w
	var left []string
	for _, each := range w.submits.all {
		record, known := w.disk.record(each.id)
		if each.final == rejectedPhase {
			continue
		}
		if each.final == "" || !known || !record.Phase.Final() || record.Holding {
			reason := ""
			if record.Reason != nil {
				reason = record.Reason.Message
			}
			left = append(left, fmt.Sprintf("%s is %q (%s)", each.name, record.Phase, reason))
		}
	}
	for _, key := range sortedKeys(w.cluster.objects) {
		left = append(left, "object "+key)
	}
	for _, p := range w.cluster.podsOf(func(p *pod) bool { return p.workload != "" }) {
		left = append(left, "pod "+p.name)
	}
	if len(w.disk.outbox) > 0 {
		left = append(left, fmt.Sprintf("%d messages in the outbox", len(w.disk.outbox)))
	}
	left = append(left, c.unpublishedEnds()...)
	return words(left)
}

// unpublishedEnds lists the workloads whose end no event of the stream reports.
func (c *checker) unpublishedEnds() (left []string) {
	w := c.w
	published := map[workload.ID]bool{}
	if s := w.net.streams[bus.EventsStream]; s != nil {
		for _, m := range s.messages {
			if changed, ok := payloadOf(m).(*event.WorkloadChanged); ok && changed.Phase.Final() {
				published[changed.ID] = true
			}
		}
	}
	for _, each := range w.submits.all {
		if each.final != "" && each.final != rejectedPhase && !published[each.id] {
			left = append(left, "no event tells the end of "+each.name)
		}
	}
	return left
}

// clean reports whether nothing is held, running or still to be published: G5.
func (c *checker) clean() bool {
	w := c.w
	return len(w.disk.live) == 0 && len(w.cluster.objects) == 0 && len(w.disk.outbox) == 0 &&
		len(w.cluster.podsOf(func(p *pod) bool { return p.workload != "" })) == 0 && len(c.unpublishedEnds()) == 0 &&
		!slices.ContainsFunc(w.machines, func(m *machine) bool { return m.dead })
}

// reserved sums up what is reserved on nodes.
func (l *ledger) reserved() map[admission.NodeKey]resource.List {
	sums := map[admission.NodeKey]resource.List{}
	for _, r := range l.live {
		for _, p := range r.Placements {
			key := admission.NodeKey{Cluster: r.Cluster, Name: p.Node}
			sums[key] = sums[key].Plus(r.requests[p.PodSet].Times(int64(p.Pods)))
		}
	}
	return sums
}
