package admission

import (
	"maps"
	"slices"

	"muster.dev/muster/pkg/spec/workload"
)

// copier makes a copy of a state that decides as the state itself would: it has the
// verdicts, too. The fleets are shared; the caller forks them.
type copier struct {
	from, to       *State
	queues         map[*queue]*queue
	signatures     map[*podSetSignature]*podSetSignature
	flavoredCopies map[*flavoredSignature]*flavoredSignature
	classes        map[*equivalenceClass]*equivalenceClass
	gangs          map[*Started]*Started
	waiting        []Waiting             // room for all
	left           map[*Waiting]*Waiting // that no longer wait
}

// clone returns a copy of the state, at a cost that is linear in the number of gangs.
func (s *State) clone() *State {
	to := *s
	c := &copier{
		from: s, to: &to, queues: make(map[*queue]*queue, len(s.queues)), signatures: make(map[*podSetSignature]*podSetSignature, len(s.signatures)),
		flavoredCopies: make(map[*flavoredSignature]*flavoredSignature, len(s.flavored)), classes: map[*equivalenceClass]*equivalenceClass{},
		gangs: make(map[*Started]*Started, len(s.started)), waiting: make([]Waiting, 0, s.waiting.Len()), left: map[*Waiting]*Waiting{},
	}
	to.fleets, to.clusters, to.tree = maps.Clone(s.fleets), slices.Clone(s.clusters), s.tree.Copy()
	to.events.reshaped, to.events.ranges.names = slices.Clone(s.events.reshaped), maps.Clone(s.events.ranges.names)
	to.events.quotaFreed, to.nodeSizes, to.learned = maps.Clone(s.events.quotaFreed), maps.Clone(s.nodeSizes), s.learned.clone()
	to.evictedFor = s.evictedFor.clone()
	c.copyStarted()
	c.copySignatures()
	c.copyWaiting()
	c.copyReservations()
	c.copyKept()
	return &to
}

func (c *copier) copyStarted() {
	c.to.queues, c.to.sorted = make(map[string]*queue, len(c.from.queues)), make([]*queue, len(c.from.sorted))
	for i, q := range c.from.sorted {
		copied := newQueue(q.name, c.to.tree.Queue(q.name))
		copied.nominations, copied.allowance = q.nominations, q.allowance
		for name, local := range q.locals {
			same := *local
			copied.locals[name] = &same
		}
		c.queues[q], c.to.sorted[i], c.to.queues[q.name] = copied, copied, copied
	}
	c.to.started = make(map[workload.ID]*Started, len(c.from.started))
	for id, g := range c.from.started {
		copied := c.gang(g)
		c.to.started[id], copied.queue.started[id] = copied, copied
	}
}

// gang returns the copy of a gang that has or had places.
func (c *copier) gang(g *Started) *Started {
	copied := c.gangs[g]
	if copied == nil {
		same := *g
		copied = &same
		copied.queue = c.queues[g.queue]
		c.gangs[g] = copied
		if g.giving != nil {
			copied.giving = c.gang(g.giving)
		}
		if g.whole != nil {
			copied.whole = c.gang(g.whole)
		}
	}
	return copied
}

func (c *copier) copyGangs(gangs []*Started) []*Started {
	copies := make([]*Started, len(gangs))
	for i, g := range gangs {
		copies[i] = c.gang(g)
	}
	return copies
}

func (c *copier) copySignatures() {
	c.to.signatures, c.to.flavored = make(map[string]*podSetSignature, len(c.from.signatures)), make(map[string]*flavoredSignature, len(c.from.flavored))
	c.to.aliases = make(map[*workload.PodSet]*podSetSignature, len(c.from.aliases))
	for key, flavored := range c.from.flavored {
		c.to.flavored[key] = c.flavored(flavored)
	}
	for key, sig := range c.from.signatures {
		copied := &podSetSignature{key: sig.key, placed: sig.placed, podSets: sig.podSets, home: sig.home, needs: sig.needs, demand: sig.demand, refs: sig.refs, aliases: slices.Clone(sig.aliases), options: make(map[*queue]*flavorOptions, len(sig.options))}
		for q, o := range sig.options {
			same := *o
			same.flavored = make([]*flavoredSignature, len(o.flavored))
			for i, flavored := range o.flavored {
				same.flavored[i] = c.flavored(flavored)
			}
			copied.options[c.queues[q]] = &same
		}
		for _, alias := range copied.aliases {
			c.to.aliases[alias] = copied
		}
		c.signatures[sig], c.to.signatures[key] = copied, copied
	}
	for sig, copied := range c.signatures {
		copied.least = c.signatures[sig.least]
	}
}

// flavored returns the copy of a flavored signature, nil of nil.
func (c *copier) flavored(flavored *flavoredSignature) *flavoredSignature {
	if flavored == nil {
		return nil
	}
	copied := c.flavoredCopies[flavored]
	if copied == nil {
		copied = &flavoredSignature{key: flavored.key, w: flavored.w, verdicts: maps.Clone(flavored.verdicts), offers: maps.Clone(flavored.offers), blocked: make(map[*equivalenceClass]bool, len(flavored.blocked)), refs: flavored.refs, transient: flavored.transient}
		c.flavoredCopies[flavored] = copied
	}
	return copied
}

func (c *copier) copyWaiting() {
	c.to.waiting = newWaiting(c.from.waiting.Len())
	for _, q := range c.from.sorted {
		q.blocked.settle()
		for _, class := range q.all.list {
			c.copyClass(class)
		}
		copied := c.queues[q]
		copied.all.list, copied.open.list = c.copyClasses(q.all.list), c.copyClasses(q.open.list)
		for _, class := range q.blocked.among(firstRanks{all: true}, always) {
			copied.blocked.insert(c.classes[class])
		}
		copied.blocked.added, copied.blocked.looked = q.blocked.added, q.blocked.looked
	}
	for flavored, copied := range c.flavoredCopies {
		for class := range flavored.blocked {
			copied.blocked[c.classes[class]] = true
		}
	}
	for w := range c.from.waiting.All() {
		if w.class == nil {
			c.copyOne(w, nil)
		}
	}
	for _, q := range c.from.sorted {
		c.queues[q].patient = c.copyList(q.patient)
		if q.front != nil { // or it is to be found again
			c.queues[q].front = c.copyList(q.front)
		}
	}
	c.to.fresh, c.to.backingOff, c.to.asked = c.copyList(c.from.fresh), c.copyList(c.from.backingOff), c.copyList(c.from.asked)
	c.to.unreported, c.to.unsettled = c.copyList(c.from.unreported), c.copyList(c.from.unsettled)
}

func (c *copier) copyClasses(list []*equivalenceClass) []*equivalenceClass {
	copies := make([]*equivalenceClass, len(list))
	for i, class := range list {
		copies[i] = c.classes[class]
	}
	return copies
}

func (c *copier) copyClass(class *equivalenceClass) {
	same := *class
	copied := &same
	copied.queue, copied.signature, copied.blockedBy = c.queues[class.queue], c.signatures[class.signature], nil
	copied.unplaced.flavoredSignature = c.flavored(class.unplaced.flavoredSignature)
	copied.members = make([]*Waiting, len(class.members))
	for i, w := range class.members {
		copied.members[i] = c.copyOne(w, copied)
	}
	copied.queue.classes[copied.first().key()] = copied
	c.classes[class] = copied
}

func (c *copier) copyOne(w *Waiting, in *equivalenceClass) *Waiting {
	c.waiting = append(c.waiting, *w)
	copied := &c.waiting[len(c.waiting)-1]
	copied.queue, copied.signature, copied.class = c.queues[w.queue], c.signatures[w.signature], in
	if w.local != nil {
		copied.local = copied.queue.locals[localOf(w.Workload)]
	}
	c.to.waiting.Put(copied)
	return copied
}

// waitingCopy returns the copy of a workload that waits or has waited.
func (c *copier) waitingCopy(w *Waiting) *Waiting {
	if c.from.waiting.Has(w) {
		return c.to.waiting.Get(w.Workload.ID)
	}
	copied := c.left[w]
	if copied == nil {
		same := *w
		copied = &same
		copied.queue, copied.signature, copied.class, copied.local = c.queues[w.queue], nil, nil, nil
		c.left[w] = copied
	}
	return copied
}

func (c *copier) copyList(list []*Waiting) []*Waiting {
	copies := make([]*Waiting, len(list))
	for i, w := range list {
		copies[i] = c.waitingCopy(w)
	}
	return copies
}

// copyKept copies for which heads quota is kept.
func (c *copier) copyKept() {
	for from, to := range c.queues {
		if from.kept != nil {
			to.kept = c.waitingCopy(from.kept)
		}
	}
}

// copyReservations copies nominations and head reservations.
func (c *copier) copyReservations() {
	c.to.nominations = make([]*nomination, len(c.from.nominations))
	for i, old := range c.from.nominations {
		same := *old
		same.waiting, same.flavored, same.awaits = c.waitingCopy(old.waiting), c.flavored(old.flavored), c.copyGangs(old.awaits)
		c.to.nominations[i] = &same
	}
	c.to.reservations = make([]*headReservation, len(c.from.reservations))
	for i, old := range c.from.reservations {
		same := *old
		same.head, same.flavored, same.after, same.blocked = c.waitingCopy(old.head), c.flavored(old.flavored), c.copyGangs(old.after), nil
		for class := range old.blocked {
			same.block(c.classes[class])
		}
		c.to.reservations[i] = &same
	}
}
