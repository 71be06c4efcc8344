package admission

import (
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/placement"
	"muster.dev/muster/pkg/quota"
	"muster.dev/muster/pkg/workload"
)

// Reconfigure gives the state another tree of queues, of which nothing is used
// yet. Who waits, who has places and who has a claim stays; everything is looked
// at anew.
func (s *State) Reconfigure(tree *quota.Tree) {
	s.unpark()
	*s = *s.successor(tree, s.inLine(s.waiting.Len()))
}

// unpark has the fleets forget the variants.
func (s *State) unpark() {
	for _, v := range s.variants {
		for cluster := range v.verdicts {
			s.fleets[cluster].Unpark(v.key)
		}
	}
}

// successor returns a state of the same nodes with copies of all else, and of the
// given waiting only. What was found out about those is not kept, but since when
// nodes are drained for whom.
func (s *State) successor(tree *quota.Tree, waiting []*Waiting) *State {
	next := NewState(tree)
	next.fleets, next.clusters, next.size, next.total = s.fleets, s.clusters, maps.Clone(s.size), s.total
	next.tree.SetCapacity(s.total)
	next.grown, next.newCluster = true, true
	next.searched = s.searched
	for preemptor, victims := range s.fought {
		next.fought[preemptor] = maps.Clone(victims)
	}
	for _, q := range s.sorted {
		if queue := tree.Queue(q.name); queue != nil {
			queue.SetHistory(q.quota.History())
		}
	}
	for id, g := range s.started {
		c := *g
		c.queue = next.queue(c.Queue)
		c.queue.quota.Use(c.charges)
		next.started[id], c.queue.started[id] = &c, &c
	}
	for _, sh := range s.shapes {
		known := &shape{key: sh.key, podSets: sh.podSets, demand: sh.demand, options: map[*queue]*options{}}
		next.shapes[sh.key] = known
		if len(sh.podSets) > 0 {
			known.aliases = []*workload.PodSet{&sh.podSets[0]}
			next.aliases[known.aliases[0]] = known
		}
	}
	for _, w := range waiting {
		next.enqueue(w.anew(s)) // the fleets expect it already
	}
	for _, c := range s.claims {
		next.inherit(c, s)
	}
	for _, h := range s.holds {
		next.inheritHold(h)
	}
	for name, q := range next.queues {
		if old := s.queues[name]; old != nil {
			q.allowance = old.allowance
		}
	}
	return next
}

// anew is the waiting workload as its caller would enter it now.
func (w *Waiting) anew(s *State) Waiting {
	c := *w
	c.queue, c.shape, c.bucket, c.held, c.index = nil, nil, nil, nil, 0
	if w.bucket != nil || w.claimed(s) != nil {
		c.NotBefore = time.Time{} // that is over
	}
	return c
}

// inherit takes a claim over; its places are taken in the fleet already.
func (s *State) inherit(old *claim, from *State) {
	c := *old
	w := s.waiting.Get(old.waiting.Workload.ID)
	if w == nil {
		s.enqueue(old.waiting.anew(from))
		w = s.waiting.Get(old.waiting.Workload.ID)
	}
	s.fromBucket(w)
	c.waiting = w
	c.variant = s.optionsOf(w.queue, w.shape).like(old.variant)
	c.leaving = s.same(old.leaving)
	w.queue.quota.Use(c.assess.Charges)
	w.queue.claims++
	s.claims = append(s.claims, &c) // the old ones are in order
}

// inheritHold takes a hold over if its head is the head still. The head is looked
// at anew, and if it does not start the hold is made anew; but until then nobody
// passes it, and since when nodes have been drained for it stays known.
func (s *State) inheritHold(old *hold) {
	w := s.waiting.Get(old.head.Workload.ID)
	if w == nil || w.bucket == nil || !w.queue.backfills() || w.queue.head() != w {
		return
	}
	h := *old
	h.head, h.stale, h.behind = w, true, nil
	h.variant = s.optionsOf(w.queue, w.shape).like(old.variant)
	h.after = s.same(old.after)
	w.bucket.lacks = h.variant
	s.holds = append(s.holds, &h) // the old ones are in order
}

// same returns the state's own copies of another state's started gangs.
func (s *State) same(gangs []*Started) []*Started {
	var copies []*Started
	for _, g := range gangs {
		if copied := s.started[g.Workload.ID]; copied != nil {
			copies = append(copies, copied)
		}
	}
	return copies
}

// like returns the variant like another state's, made anew if the queue does not
// give the shape such flavors any more.
func (o *options) like(other *variant) *variant {
	for _, v := range o.variants {
		if v.key == other.key {
			return v
		}
	}
	return &variant{key: other.key, w: other.w, verdicts: map[string]placement.Verdict{}, waiters: map[*bucket]bool{}}
}

// inLine returns the first of the waiting that stand in line, over all queues.
func (s *State) inLine(limit int) []*Waiting {
	line := make([]*Waiting, 0, s.waiting.Len())
	for w := range s.waiting.All() {
		if w.claimed(s) == nil {
			line = append(line, w)
		}
	}
	slices.SortFunc(line, before)
	return line[:min(limit, len(line))]
}

// trial decides on a copy of the state in which something is changed, and reports
// whether the workload is admitted. With a configuration the copy is given that
// one first. The state stays as it is.
func (s *State) trial(id workload.ID, now time.Time, config *quota.Config, change func(*State)) (admitted bool) {
	s.forked(func() {
		copied := s.copied()
		if config != nil {
			tree, err := quota.New(*config)
			if err != nil {
				return
			}
			copied.Reconfigure(tree)
		}
		if change != nil {
			change(copied)
		}
		plan := Decide(copied, now)
		admitted = slices.ContainsFunc(slices.Concat(plan.Admissions, plan.Growths), func(a Admission) bool { return a.Workload == id })
	})
	return admitted
}

// rehearse calls play with a state of the same gangs, but of the given of the
// waiting only, to whom nobody has looked yet.
func (s *State) rehearse(waiting []*Waiting, play func(*State)) {
	tree, err := quota.New(s.tree.Config())
	if err != nil {
		return
	}
	s.forked(func() {
		s.unpark()
		play(s.successor(tree, waiting))
	})
}

// forked undoes what play does on the nodes.
func (s *State) forked(play func()) {
	for _, cluster := range s.clusters {
		fleet := s.fleets[cluster]
		mark := fleet.Fork()
		defer fleet.Rollback(mark)
	}
	play()
}
