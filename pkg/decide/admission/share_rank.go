package admission

import (
	"slices"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// sharesWith ranks the queues of the workload's tree by their shares once the workload
// has the charges; nil without fair sharing.
func (d *decision) sharesWith(w *Waiting, charges []quota.Charge) map[*queue]int {
	if !d.state.fair() {
		return nil
	}
	before := d.state.tree.Begin()
	defer d.state.tree.Rollback(before)
	w.queue.quota.Allocate(charges)
	var queues []*queue
	for _, q := range d.state.sorted {
		if w.queue.quota.SameTree(q.quota) {
			queues = append(queues, q)
		}
	}
	return w.shareRanks(queues)
}

// shareRanks ranks queues as Kueue does: from the root down, the branch with the larger
// share comes first. Of equal ones the queue of the workload comes last.
func (w *Waiting) shareRanks(queues []*queue) map[*queue]int {
	shares := make(map[*queue][]quota.ExactShare, len(queues))
	for _, q := range queues {
		shares[q] = q.quota.Shares()
	}
	compare := func(a, b *queue) int {
		if by := slices.CompareFunc(shares[b], shares[a], quota.ExactShare.Compare); by != 0 || a == b {
			return by
		}
		switch w.queue {
		case a:
			return 1
		case b:
			return -1
		}
		return 0
	}
	slices.SortStableFunc(queues, compare)
	ranks := make(map[*queue]int, len(queues))
	for i, q := range queues {
		if ranks[q] = i; i > 0 && compare(queues[i-1], q) == 0 {
			ranks[q] = ranks[queues[i-1]]
		}
	}
	return ranks
}

// shareRank returns the greatest rank at which a victim's queue is when it is evicted.
// Each time the gang goes that is in the queue with the largest share, and the ranks are
// those among the queues that still have candidates. So a queue is not left below others
// that go on borrowing. Of more victims than the exact search has, the ranks are those
// before the first eviction.
func (p *preemption) shareRank(list []candidate, a *candidateSet) int {
	worst := 0
	if !p.d.state.fair() || len(list) > mostVictims {
		for _, c := range list {
			worst = max(worst, c.shareRank)
		}
		return worst
	}
	before := p.d.state.tree.Begin()
	defer p.d.state.tree.Rollback(before)
	p.w.queue.quota.Allocate(p.charges)
	remaining := map[*queue]int{}
	counted := map[workload.ID]bool{} // a gang may be among them with several parts
	for _, c := range a.candidates {
		if !counted[c.Workload.ID] {
			counted[c.Workload.ID] = true
			remaining[c.queue]++
		}
	}
	for left := slices.Clone(list); len(left) > 0; {
		var queues []*queue
		for _, q := range p.d.state.sorted {
			if remaining[q] > 0 {
				queues = append(queues, q)
			}
		}
		ranks, first := p.w.shareRanks(queues), 0
		for i, c := range left {
			if ranks[c.queue] < ranks[left[first].queue] {
				first = i
			}
		}
		c := left[first]
		worst = max(worst, ranks[c.queue])
		c.queue.quota.Release(c.charges)
		remaining[c.queue]--
		left = slices.Delete(left, first, first+1)
	}
	return worst
}
