package admission

import (
	"maps"
	"slices"

	"muster.dev/muster/pkg/workload"
)

// copying makes a copy of a state that decides as the state itself would: what
// was found out about the waiting is known to it, too. The fleets are the same;
// the caller forks them.
type copying struct {
	from, to *State
	queues   map[*queue]*queue
	shapes   map[*shape]*shape
	variants map[*variant]*variant
	buckets  map[*bucket]*bucket
	gangs    map[*Started]*Started
	waiting  []Waiting // room for all
}

// copied costs as much as there are gangs.
func (s *State) copied() *State {
	to := *s
	c := &copying{
		from: s, to: &to, queues: make(map[*queue]*queue, len(s.queues)), shapes: make(map[*shape]*shape, len(s.shapes)),
		variants: make(map[*variant]*variant, len(s.variants)), buckets: map[*bucket]*bucket{},
		gangs: make(map[*Started]*Started, len(s.started)), waiting: make([]Waiting, 0, s.waiting.Len()),
	}
	to.fleets, to.clusters, to.tree = maps.Clone(s.fleets), slices.Clone(s.clusters), s.tree.Copy()
	to.freed, to.size = maps.Clone(s.freed), maps.Clone(s.size)
	to.fought = make(map[workload.ID]map[workload.ID]bool, len(s.fought))
	for preemptor, victims := range s.fought {
		to.fought[preemptor] = maps.Clone(victims)
	}
	c.copyStarted()
	c.copyShapes()
	c.copyWaiting()
	c.copyPromises()
	return &to
}

func (c *copying) copyStarted() {
	c.to.queues, c.to.sorted = make(map[string]*queue, len(c.from.queues)), make([]*queue, len(c.from.sorted))
	for i, q := range c.from.sorted {
		copied := newQueue(q.name, c.to.tree.Queue(q.name))
		copied.claims, copied.allowance = q.claims, q.allowance
		c.queues[q], c.to.sorted[i], c.to.queues[q.name] = copied, copied, copied
	}
	c.to.started = make(map[workload.ID]*Started, len(c.from.started))
	for id, g := range c.from.started {
		copied := c.gang(g)
		c.to.started[id], copied.queue.started[id] = copied, copied
	}
}

// gang returns the copy of a gang that has places, or has had them.
func (c *copying) gang(g *Started) *Started {
	copied := c.gangs[g]
	if copied == nil {
		same := *g
		copied = &same
		copied.queue = c.queues[g.queue]
		c.gangs[g] = copied
	}
	return copied
}

func (c *copying) copyGangs(gangs []*Started) []*Started {
	copies := make([]*Started, len(gangs))
	for i, g := range gangs {
		copies[i] = c.gang(g)
	}
	return copies
}

func (c *copying) copyShapes() {
	c.to.shapes, c.to.variants = make(map[string]*shape, len(c.from.shapes)), make(map[string]*variant, len(c.from.variants))
	c.to.aliases = make(map[*workload.PodSet]*shape, len(c.from.aliases))
	for key, v := range c.from.variants {
		c.to.variants[key] = c.variant(v)
	}
	for key, sh := range c.from.shapes {
		copied := &shape{key: sh.key, podSets: sh.podSets, demand: sh.demand, refs: sh.refs, aliases: slices.Clone(sh.aliases), options: make(map[*queue]*options, len(sh.options))}
		for q, o := range sh.options {
			same := *o
			same.variants = make([]*variant, len(o.variants))
			for i, v := range o.variants {
				same.variants[i] = c.variant(v)
			}
			copied.options[c.queues[q]] = &same
		}
		for _, alias := range copied.aliases {
			c.to.aliases[alias] = copied
		}
		c.shapes[sh], c.to.shapes[key] = copied, copied
	}
}

// variant returns the copy of a variant, nil of none.
func (c *copying) variant(v *variant) *variant {
	if v == nil {
		return nil
	}
	copied := c.variants[v]
	if copied == nil {
		copied = &variant{key: v.key, w: v.w, verdicts: maps.Clone(v.verdicts), waiters: make(map[*bucket]bool, len(v.waiters)), shapes: v.shapes}
		c.variants[v] = copied
	}
	return copied
}

func (c *copying) copyWaiting() {
	c.to.waiting = newWaiting(c.from.waiting.Len())
	for _, q := range c.from.sorted {
		for _, b := range q.all.list {
			c.copyBucket(b)
		}
		copied := c.queues[q]
		copied.all.list, copied.open.list = c.copyBuckets(q.all.list), c.copyBuckets(q.open.list)
		for b := range q.blocked {
			copied.blocked[c.buckets[b]] = true
		}
	}
	for v, copied := range c.variants {
		for b := range v.waiters {
			copied.waiters[c.buckets[b]] = true
		}
	}
	for w := range c.from.waiting.All() {
		if w.bucket == nil {
			c.copyOne(w, nil)
		}
	}
	for _, q := range c.from.sorted {
		c.queues[q].young = c.copyList(q.young)
	}
	c.to.fresh, c.to.later = c.copyList(c.from.fresh), c.copyList(c.from.later)
}

func (c *copying) copyBuckets(list []*bucket) []*bucket {
	copies := make([]*bucket, len(list))
	for i, b := range list {
		copies[i] = c.buckets[b]
	}
	return copies
}

func (c *copying) copyBucket(b *bucket) {
	same := *b
	copied := &same
	copied.queue, copied.shape, copied.lacks, copied.behind = c.queues[b.queue], c.shapes[b.shape], c.variant(b.lacks), nil
	copied.members = make([]*Waiting, len(b.members))
	for i, w := range b.members {
		copied.members[i] = c.copyOne(w, copied)
	}
	copied.queue.buckets[copied.head().key()] = copied
	c.buckets[b] = copied
}

func (c *copying) copyOne(w *Waiting, in *bucket) *Waiting {
	c.waiting = append(c.waiting, *w)
	copied := &c.waiting[len(c.waiting)-1]
	copied.queue, copied.shape, copied.bucket = c.queues[w.queue], c.shapes[w.shape], in
	c.to.waiting.Put(copied)
	return copied
}

// waits returns the copy of one that waits, or does not any more.
func (c *copying) waits(w *Waiting) *Waiting {
	if c.from.waiting.Has(w) {
		return c.to.waiting.Get(w.Workload.ID)
	}
	gone := *w
	gone.queue, gone.shape, gone.bucket = c.queues[w.queue], nil, nil
	return &gone
}

func (c *copying) copyList(list []*Waiting) []*Waiting {
	copies := make([]*Waiting, len(list))
	for i, w := range list {
		copies[i] = c.waits(w)
	}
	return copies
}

// copyPromises copies claims and holds.
func (c *copying) copyPromises() {
	c.to.claims = make([]*claim, len(c.from.claims))
	for i, old := range c.from.claims {
		same := *old
		same.waiting, same.variant, same.leaving = c.waits(old.waiting), c.variant(old.variant), c.copyGangs(old.leaving)
		c.to.claims[i] = &same
	}
	c.to.holds = make([]*hold, len(c.from.holds))
	for i, old := range c.from.holds {
		same := *old
		same.head, same.variant, same.after, same.behind = c.waits(old.head), c.variant(old.variant), c.copyGangs(old.after), nil
		for b := range old.behind {
			same.holdBack(c.buckets[b])
		}
		c.to.holds[i] = &same
	}
}
