package admission

import (
	"cmp"
	"time"
)

// classRank is the place of a blocked class. It stays as it was when the class was blocked: where
// evictions depend on the first gang, another first gang reopens the class.
type classRank struct {
	priority int32
	order    int64
	number   int64 // of those that were added; zero when the class is not blocked
}

func (r classRank) before(o classRank) bool {
	return cmp.Or(cmp.Compare(o.priority, r.priority), cmp.Compare(r.order, o.order), cmp.Compare(r.number, o.number)) < 0
}

// with returns the tree with another class.
func (t *blockedClass) with(added *blockedClass) *blockedClass {
	if t == nil {
		return added
	}
	if added.weight > t.weight {
		added.left, added.right = t.split(added.class.rank)
		added.sum()
		return added
	}
	t.push()
	if added.class.rank.before(t.class.rank) {
		t.left = t.left.with(added)
	} else {
		t.right = t.right.with(added)
	}
	t.sum()
	return t
}

// split returns the classes before a rank, and the others.
func (t *blockedClass) split(at classRank) (first, others *blockedClass) {
	if t == nil {
		return nil, nil
	}
	t.push()
	if t.class.rank.before(at) {
		t.right, others = t.right.split(at)
		t.sum()
		return t, others
	}
	first, t.left = t.left.split(at)
	t.sum()
	return first, t
}

// without returns the tree without a class, which is there.
func (t *blockedClass) without(class *equivalenceClass) *blockedClass {
	t.push()
	if t.class == class {
		return merge(t.left, t.right)
	}
	if class.rank.before(t.class.rank) {
		t.left = t.left.without(class)
	} else {
		t.right = t.right.without(class)
	}
	t.sum()
	return t
}

// merge returns one tree of two; all of the first come before all of the second.
func merge(first, second *blockedClass) *blockedClass {
	switch {
	case first == nil:
		return second
	case second == nil:
		return first
	case first.weight > second.weight:
		first.push()
		first.right = merge(first.right, second)
		first.sum()
		return first
	}
	second.push()
	second.left = merge(first, second.left)
	second.sum()
	return second
}

// refresh reads a class again, which is there.
func (t *blockedClass) refresh(class *equivalenceClass) {
	t.push()
	switch {
	case t.class == class:
		t.read()
	case class.rank.before(t.class.rank):
		t.left.refresh(class)
	default:
		t.right.refresh(class)
	}
	t.sum()
}

// read reads what concerns the class.
func (t *blockedClass) read() {
	c := t.class
	t.own, t.hopelessSince = always, neverTried
	if c.triedPreemption {
		t.own, t.hopelessSince = t.own|anyRoom, c.hopelessAt
	}
	if len(c.overQuota) > 0 {
		t.own |= moreQuota
	}
	if c.blockedBy != nil || c.sparing {
		t.own |= keptBack
	}
	if len(c.members) > 0 && len(c.members[0].beyond) > 0 {
		t.own |= otherRanges
	}
}

// sum computes what is known of this part of the tree.
func (t *blockedClass) sum() {
	t.all, t.least, t.next = t.own, t.hopelessSince, t.class.retryAt
	for _, part := range []*blockedClass{t.left, t.right} {
		if part != nil {
			t.all, t.least, t.next = t.all|part.all, min(t.least, part.least), earliest(t.next, part.next)
		}
	}
}

// push notes what is pending one step further down.
func (t *blockedClass) push() {
	if !t.pending.IsZero() {
		t.left.retryAll(t.pending)
		t.right.retryAll(t.pending)
		t.pending = time.Time{}
	}
}

// retryAll has all classes reopened at that time at the latest.
func (t *blockedClass) retryAll(at time.Time) {
	if t != nil {
		t.class.retryAt, t.next, t.pending = earliest(t.class.retryAt, at), earliest(t.next, at), earliest(t.pending, at)
	}
}

func (t *blockedClass) settle() {
	if t != nil {
		t.push()
		t.left.settle()
		t.right.settle()
	}
}

// earliest returns the earlier time; zero is none.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// isDue reports whether a time has come; zero is none.
func isDue(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }

// spread mixes the bits of a number, so that consecutive numbers get weights without order. Equal
// weights have equal numbers (the finalizer of splitmix64).
func spread(number int64) uint64 {
	x := uint64(number)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
