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
	for _, v := range s.variants {
		for cluster := range v.verdicts {
			s.fleets[cluster].Unpark(v.key)
		}
	}
	*s = *s.successor(tree, s.inLine(len(s.waiting)))
}

// successor returns a state of the same nodes with copies of all else, and of the
// given waiting only.
func (s *State) successor(tree *quota.Tree, waiting []*Waiting) *State {
	next := NewState(tree)
	next.fleets, next.clusters, next.size, next.total = s.fleets, s.clusters, maps.Clone(s.size), s.total
	next.tree.SetCapacity(s.total)
	next.grown, next.newCluster = true, true
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
		known := &shape{key: sh.key, podSets: sh.podSets, options: map[*queue]*options{}}
		next.shapes[sh.key] = known
		if len(sh.podSets) > 0 {
			known.aliases = []*workload.PodSet{&sh.podSets[0]}
			next.aliases[known.aliases[0]] = known
		}
	}
	for _, w := range waiting {
		next.Enqueue(w.anew())
	}
	for _, c := range s.claims {
		next.inherit(c)
	}
	return next
}

// anew is the waiting workload as its caller entered it.
func (w *Waiting) anew() Waiting {
	c := *w
	c.queue, c.shape, c.bucket, c.held, c.index = nil, nil, nil, nil, 0
	return c
}

// inherit takes a claim over; its places are taken in the fleet already.
func (s *State) inherit(old *claim) {
	c := *old
	w := s.waiting[old.waiting.Workload.ID]
	if w == nil {
		s.Enqueue(old.waiting.anew())
		w = s.waiting[old.waiting.Workload.ID]
	}
	s.fromBucket(w)
	c.waiting = w
	c.variant = s.optionsOf(w.queue, w.shape).like(old, s)
	c.leaving = nil
	for _, g := range old.leaving {
		if copied := s.started[g.Workload.ID]; copied != nil {
			c.leaving = append(c.leaving, copied)
		}
	}
	w.queue.quota.Use(c.assess.Charges)
	w.queue.claims++
	s.claims = append(s.claims, &c) // the old ones are in order
}

// like returns the variant of the claim, made anew if the queue does not give the
// shape such flavors any more.
func (o *options) like(c *claim, s *State) *variant {
	for _, v := range o.variants {
		if v.key == c.variant.key {
			return v
		}
	}
	return &variant{key: c.variant.key, w: c.variant.w, verdicts: map[string]placement.Verdict{}, waiters: map[*bucket]bool{}}
}

// inLine returns the first of the waiting that stand in line, over all queues.
func (s *State) inLine(limit int) []*Waiting {
	line := make([]*Waiting, 0, len(s.waiting))
	for _, w := range s.waiting {
		if w.claimed(s) == nil {
			line = append(line, w)
		}
	}
	slices.SortFunc(line, before)
	return line[:min(limit, len(line))]
}

// trialWaiting bounds how many of the waiting take part in a trial.
const trialWaiting = 2000

// trial decides on a copy of the state in which something is changed, and reports
// whether the workload is admitted. The state stays as it is.
func (s *State) trial(id workload.ID, now time.Time, config quota.Config, change func(*State)) bool {
	admitted, _ := s.rehearse(id, now, config, change)
	return admitted
}

// rehearse is trial, and says why the workload waits there when it is not
// admitted.
func (s *State) rehearse(id workload.ID, now time.Time, config quota.Config, change func(*State)) (admitted bool, why *workload.Reason) {
	tree, err := quota.New(config)
	if err != nil {
		return false, nil
	}
	for _, cluster := range s.clusters {
		fleet := s.fleets[cluster]
		mark := fleet.Begin()
		defer fleet.Rollback(mark)
	}
	line := s.inLine(trialWaiting)
	if target := s.waiting[id]; target.claimed(s) == nil && !slices.Contains(line, target) {
		line = append(line, target)
	}
	copied := s.successor(tree, line)
	copied.trying = true
	if change != nil {
		change(copied)
	}
	plan := Decide(copied, now)
	if slices.ContainsFunc(slices.Concat(plan.Admissions, plan.Growths), func(a Admission) bool { return a.Workload == id }) {
		return true, nil
	}
	if w := copied.waiting[id]; w != nil {
		why = copied.reason(w)
	}
	return false, why
}
