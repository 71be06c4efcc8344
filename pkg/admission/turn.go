package admission

import (
	"maps"
	"slices"

	"muster.dev/muster/pkg/quota"
)

// next returns the bucket whose head comes next, nil when nothing is left to
// try. Within a tree of cohorts fair sharing decides, if it is on; if not, who
// need not borrow comes before who must, as in Kueue, so that nothing is lent
// that its owner asks for. Then priority and submission decide.
func (d *decision) next() *bucket {
	trees := map[string][]*bucket{}
	var best *bucket
	for _, q := range d.state.sorted {
		b := q.candidate(d.now)
		switch {
		case b == nil:
		case q.quota.Cohort != "":
			root := q.quota.Root()
			trees[root] = append(trees[root], b)
		case best == nil || before(b.head(), best.head()) < 0:
			best = b
		}
	}
	for _, root := range slices.Sorted(maps.Keys(trees)) {
		if first := d.firstOf(trees[root]); best == nil || before(first.head(), best.head()) < 0 {
			best = first
		}
	}
	return best
}

// firstOf returns which of the buckets, of queues of one tree, comes first.
func (d *decision) firstOf(candidates []*bucket) *bucket {
	if len(candidates) == 1 {
		return candidates[0]
	}
	if d.state.fair() {
		return d.fairest(candidates)
	}
	first, borrows := candidates[0], d.borrows(candidates[0])
	for _, b := range candidates[1:] {
		must := d.borrows(b)
		if must == borrows && before(b.head(), first.head()) < 0 || borrows && !must {
			first, borrows = b, must
		}
	}
	return first
}

// borrows reports whether the bucket's gangs are within quota now, but only by
// borrowing.
func (d *decision) borrows(b *bucket) bool {
	o := d.state.optionsOf(b.queue, b.shape)
	if len(o.assignments) == 0 {
		return false
	}
	return b.queue.quota.Assess(o.assignments)[0].Borrows
}

func (s *State) fair() bool {
	policy := s.tree.Config().FairSharing
	return policy != nil && policy.Enable
}

func (d *decision) fairest(candidates []*bucket) *bucket {
	heads := make([]quota.Head, len(candidates))
	for i, b := range candidates {
		heads[i] = quota.Head{Queue: b.queue.quota}
		if o := d.state.optionsOf(b.queue, b.shape); len(o.assignments) > 0 {
			heads[i].Charges = b.queue.quota.Assess(o.assignments)[0].Charges
		}
	}
	return candidates[d.state.tree.Fairest(heads, func(i, j int) bool {
		return before(candidates[i].head(), candidates[j].head()) < 0
	})]
}
