package quota

// Head is the gang that a queue would start next.
type Head struct {
	Queue   *Queue
	Charges []Charge
}

// Fairest returns which of the heads, of different queues of one tree, comes
// first under fair sharing, as in Kueue: in each cohort the branch whose share,
// with the charges of its head, is the smallest, from the leaves to the root.
// Where shares are equal, before decides.
func (t *Tree) Fairest(heads []Head, before func(i, j int) bool) int {
	winner := map[*node]int{}
	deepest := 0
	level := map[int][]*node{}
	for i, h := range heads {
		depth := h.Queue.node.depth()
		winner[h.Queue.node] = i
		level[depth] = append(level[depth], h.Queue.node)
		deepest = max(deepest, depth)
	}
	for depth := deepest; depth > 0; depth-- {
		share := map[*node]ExactShare{} // of the best child, by parent
		for _, n := range level[depth] {
			i := winner[n]
			mine := heads[i].Queue.shareWith(n, heads[i].Charges)
			best, rivals := winner[n.parent]
			if !rivals {
				level[depth-1] = append(level[depth-1], n.parent)
			}
			if by := mine.Compare(share[n.parent]); !rivals || by < 0 || by == 0 && before(i, best) {
				winner[n.parent], share[n.parent] = i, mine
			}
		}
	}
	return winner[heads[0].Queue.node.root()]
}

// shareWith is the share of an ancestor of the queue, past use included, if the
// queue used the charges, too.
func (q *Queue) shareWith(n *node, charges []Charge) ExactShare {
	before := q.tree.Begin()
	defer q.tree.Rollback(before)
	q.Allocate(charges)
	share, past := q.tree.share(n), q.tree.past(n)
	if n.weight == 0 && past.compare(fraction{}) > 0 {
		share.Share = MaxShare
	}
	share.part = share.part.plus(past)
	return share
}

// FairToEvict reports whether fair sharing lets the queue, with its charges, take what
// a gang of the other queue has. Afterwards the queue's branch must not have the larger
// share (LessThanOrEqualToFinalShare), or its share must be below that of the other
// branch before (LessThanInitialShare). Only present usage counts.
func (q *Queue) FairToEvict(charges []Charge, other *Queue, theirs []Charge, strategy string) bool {
	mine, branch := branches(q.node, other.node)
	before := q.tree.share(branch)
	start := q.tree.Begin()
	defer q.tree.Rollback(start)
	other.Release(theirs)
	q.Allocate(charges)
	if strategy == LessThanInitialShare {
		return q.tree.share(mine).Compare(before) < 0
	}
	return q.tree.share(mine).Compare(q.tree.share(branch)) <= 0
}
