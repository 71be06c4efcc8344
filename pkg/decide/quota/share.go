package quota

import (
	"math"
	"math/bits"
	"slices"

	"muster.dev/muster/pkg/spec/resource"
)

// Share is a weighted dominant resource share in millionths: what a node of the
// tree uses beyond its own quota, of the resource of which that is the largest
// part of what its parent can lend, divided by its weight. A node that borrows
// with weight zero has MaxShare.
type Share int64

// MaxShare is larger than all other shares.
const MaxShare Share = math.MaxInt64

// SetCapacity sets what the clusters have in all. It reports whether that may change
// shares of fair sharing.
func (t *Tree) SetCapacity(all resource.List) (shares bool) {
	before := t.capacity
	t.capacity = all
	return t.config.FairSharing != nil && t.config.FairSharing.Enable && t.shareBaseChanged(before)
}

// Share returns the share of the queue among the children of its cohort, zero
// for a queue without cohort.
func (q *Queue) Share() Share { return q.tree.share(q.node).Share }

// Shares returns the shares of the queue and the cohorts above it, from the child
// of the root down.
func (q *Queue) Shares() []ExactShare {
	var shares []ExactShare
	for _, n := range q.node.branch() {
		shares = append(shares, q.tree.share(n))
	}
	slices.Reverse(shares)
	return shares
}

func (t *Tree) share(n *node) ExactShare {
	if n.parent == nil {
		return ExactShare{}
	}
	return t.weighted(n, t.beyond(n))
}

// beyond is what the node uses beyond its own quota, over all flavors.
func (t *Tree) beyond(n *node) map[resource.Name]int64 {
	borrowed := map[resource.Name]int64{}
	for i, used := range n.usage {
		if over := used - n.subtree[i]; over > 0 {
			borrowed[t.names[i].Resource] = add(borrowed[t.names[i].Resource], over)
		}
	}
	return borrowed
}

// weighted returns the largest fraction of what the parent can lend that the amounts
// are, divided by the weight of the node.
func (t *Tree) weighted(n *node, amounts map[resource.Name]int64) (largest ExactShare) {
	for name, amount := range amounts {
		if lendable := t.lendable(n.parent, name); lendable > 0 && amount > 0 {
			largest.Share = max(largest.Share, ratio(amount, lendable, n.weight))
			if p := partOf(amount, lendable, n.weight); p.compare(largest.part) > 0 {
				largest.part = p
			}
		}
	}
	return largest
}

// lendable is what the node can give to its children in all flavors. Of a resource
// without quota it is what the clusters have.
func (t *Tree) lendable(n *node, name resource.Name) int64 {
	if quota := t.lendableQuota(n, name); quota != 0 {
		return quota
	}
	return t.capacity[name]
}

func (t *Tree) lendableQuota(n *node, name resource.Name) int64 {
	sum := int64(0)
	for i, fr := range t.names {
		if fr.Resource == name && fr.Flavor != "" {
			sum = add(sum, n.potential(i))
		}
	}
	return sum
}

// shareBaseChanged reports whether the clusters' amount of a resource has changed that
// is in use or asked for, and of which shares in some cohort are fractions of that amount.
func (t *Tree) shareBaseChanged(before resource.List) bool {
	for _, fr := range t.names {
		if t.capacity[fr.Resource] == before[fr.Resource] {
			continue
		}
		for _, cohort := range t.cohorts {
			if t.lendableQuota(cohort, fr.Resource) == 0 {
				return true
			}
		}
	}
	return false
}

// ratio is amount / lendable / weight in millionths, in exact arithmetic, so
// that it is the same on every machine.
func ratio(amount, lendable, weightMilli int64) Share {
	if weightMilli == 0 {
		return MaxShare
	}
	hi, lo := bits.Mul64(uint64(amount), 1_000_000)
	if hi >= uint64(lendable) {
		return MaxShare - 1
	}
	part, _ := bits.Div64(hi, lo, uint64(lendable))
	hi, lo = bits.Mul64(part, defaultWeight)
	if hi >= uint64(weightMilli) {
		return MaxShare - 1
	}
	share, _ := bits.Div64(hi, lo, uint64(weightMilli))
	return Share(min(share, uint64(MaxShare-1)))
}
