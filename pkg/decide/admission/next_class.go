package admission

import (
	"maps"
	"slices"

	"muster.dev/muster/pkg/decide/quota"
)

// nextClass returns the class to try next, nil when none is open. Within a tree of
// cohorts fair sharing decides if it is on. Otherwise, as in Kueue, the head comes first
// whose quota comes from nearest by, so that a queue or a cohort does not lend what it
// asks for itself. Then priority and submission decide.
func (d *decision) nextClass() *equivalenceClass {
	trees := map[string][]*equivalenceClass{}
	var best *equivalenceClass
	for _, q := range d.state.sorted {
		class := q.candidate(d.now)
		switch {
		case class == nil:
		case q.quota.Cohort != "":
			root := q.quota.Root()
			trees[root] = append(trees[root], class)
		case best == nil || before(class.first(), best.first()) < 0:
			best = class
		}
	}
	for _, root := range slices.Sorted(maps.Keys(trees)) {
		if first := d.firstOf(trees[root]); best == nil || before(first.first(), best.first()) < 0 {
			best = first
		}
	}
	return best
}

// firstOf returns which of the classes, of queues of one tree, comes first.
func (d *decision) firstOf(candidates []*equivalenceClass) *equivalenceClass {
	if len(candidates) == 1 {
		return candidates[0]
	}
	if d.state.fair() {
		return d.fairest(candidates)
	}
	first, lowest := candidates[0], d.level(candidates[0])
	for _, class := range candidates[1:] {
		level := d.level(class)
		if level < lowest || level == lowest && before(class.first(), first.first()) < 0 {
			first, lowest = class, level
		}
	}
	return first
}

// level returns how far up the tree the gangs of the class borrow from.
func (d *decision) level(class *equivalenceClass) int {
	o := d.state.optionsOf(class.queue, class.signature)
	if len(o.assignments) == 0 {
		return 0
	}
	return class.queue.quota.Assess(o.assignments)[0].Level
}

func (s *State) fair() bool {
	policy := s.tree.Config().FairSharing
	return policy != nil && policy.Enable
}

func (d *decision) fairest(candidates []*equivalenceClass) *equivalenceClass {
	heads := make([]quota.Head, len(candidates))
	for i, class := range candidates {
		heads[i] = quota.Head{Queue: class.queue.quota}
		if o := d.state.optionsOf(class.queue, class.signature); len(o.assignments) > 0 {
			heads[i].Charges = class.queue.quota.Assess(o.assignments)[0].Charges
		}
	}
	return candidates[d.state.tree.Fairest(heads, func(i, j int) bool {
		return before(candidates[i].first(), candidates[j].first()) < 0
	})]
}
