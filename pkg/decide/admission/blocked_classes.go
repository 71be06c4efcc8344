package admission

import (
	"math"
	"time"
)

// blockedClasses are the blocked classes of a queue, in the order of their first gangs: by
// priority, the highest first, then by submission. Thousands may wait with different pod sets,
// and most events concern few of them, so each event finds those that it concerns without looking
// at the others. The classes that may evict a gang are the first ones in this order, because the
// rules of eviction compare priority and submission only.
//
// It is a treap: a search tree by rank, and a heap by weights that are spread evenly. So it has a
// logarithmic depth, and one shape, in whatever order the classes came.
type blockedClasses struct {
	root   *blockedClass
	added  int64 // so far
	looked int64 // at how many, so far
}

// concerns are what may change the refusal of a class.
type concerns uint8

const (
	// always is of each blocked class.
	always concerns = 1 << iota
	// anyRoom is of one that has considered evictions: whatever is freed may help it.
	anyRoom
	// moreQuota is of one that is not within quota.
	moreQuota
	// keptBack is of one that a reservation or kept places keep back.
	keptBack
	// otherRanges is of one that LimitRanges keep out of a cluster.
	otherRanges
)

// blockedClass is a blocked class, and the root of a part of the tree.
type blockedClass struct {
	class       *equivalenceClass
	weight      uint64
	left, right *blockedClass
	own         concerns
	// hopelessSince is hopelessAt of a class that has considered evictions, else neverTried.
	hopelessSince int64

	// of the part of the tree:

	all   concerns
	least int64     // hopelessSince
	next  time.Time // when the first is reopened without any event; zero for never
	// pending: the classes below are reopened at that time at the latest, which is not noted in
	// them yet. Zero for none.
	pending time.Time
}

const neverTried = math.MaxInt64

// add adds a class that has become blocked.
func (b *blockedClasses) add(class *equivalenceClass) {
	b.added++
	class.rank = classRank{class.priority, class.members[0].Order, b.added}
	b.insert(class)
}

// insert adds a class that has its rank.
func (b *blockedClasses) insert(class *equivalenceClass) {
	added := &blockedClass{class: class, weight: spread(class.rank.number)}
	added.read()
	added.sum()
	b.root = b.root.with(added)
}

// remove removes a class, if it is there. What was pending is noted in it.
func (b *blockedClasses) remove(class *equivalenceClass) {
	if class.rank.number != 0 {
		b.root = b.root.without(class)
		class.rank = classRank{}
	}
}

// refresh takes notice of what has changed in a class, if it is there.
func (b *blockedClasses) refresh(class *equivalenceClass) {
	if class.rank.number != 0 {
		b.root.refresh(class)
	}
}

// settle notes in all classes what is pending.
func (b *blockedClasses) settle() { b.root.settle() }

// concerned returns the classes of which any of the concerns is, or that are due.
func (b *blockedClasses) concerned(by concerns, now time.Time) []*equivalenceClass {
	return b.listConcerned(b.root, by, now, nil)
}

func (b *blockedClasses) listConcerned(t *blockedClass, by concerns, now time.Time, list []*equivalenceClass) []*equivalenceClass {
	if t == nil || t.all&by == 0 && !isDue(t.next, now) {
		return list
	}
	b.look(t)
	list = b.listConcerned(t.left, by, now, list)
	if t.own&by != 0 || isDue(t.class.retryAt, now) {
		list = append(list, t.class)
	}
	return b.listConcerned(t.right, by, now, list)
}

// triedBefore returns the classes that have considered evictions, and whose hopelessAt is less.
func (b *blockedClasses) triedBefore(hopelessAt int64) []*equivalenceClass {
	return b.listTried(b.root, hopelessAt, nil)
}

func (b *blockedClasses) listTried(t *blockedClass, below int64, list []*equivalenceClass) []*equivalenceClass {
	if t == nil || t.least >= below {
		return list
	}
	b.look(t)
	list = b.listTried(t.left, below, list)
	if t.hopelessSince < below {
		list = append(list, t.class)
	}
	return b.listTried(t.right, below, list)
}

// triedFrom returns the classes that have considered evictions, and that are not among the first.
func (b *blockedClasses) triedFrom(first firstRanks) []*equivalenceClass {
	return b.listTriedFrom(b.root, first, nil)
}

func (b *blockedClasses) listTriedFrom(t *blockedClass, first firstRanks, list []*equivalenceClass) []*equivalenceClass {
	if t == nil || t.least == neverTried {
		return list
	}
	b.look(t)
	if first.has(t.class.rank) {
		return b.listTriedFrom(t.right, first, list)
	}
	list = b.listTriedFrom(t.left, first, list)
	if t.hopelessSince != neverTried {
		list = append(list, t.class)
	}
	return b.listTriedFrom(t.right, first, list)
}

// among returns the first classes, those of which any of the concerns is.
func (b *blockedClasses) among(first firstRanks, by concerns) []*equivalenceClass {
	return b.listAmong(b.root, first, by, nil)
}

func (b *blockedClasses) listAmong(t *blockedClass, first firstRanks, by concerns, list []*equivalenceClass) []*equivalenceClass {
	if t == nil || t.all&by == 0 {
		return list
	}
	b.look(t)
	list = b.listAmong(t.left, first, by, list)
	if !first.has(t.class.rank) {
		return list
	}
	if t.own&by != 0 {
		list = append(list, t.class)
	}
	return b.listAmong(t.right, first, by, list)
}

// retryBy has the first classes reopened at that time at the latest.
func (b *blockedClasses) retryBy(first firstRanks, at time.Time) {
	b.retryFirst(b.root, first, at)
}

func (b *blockedClasses) retryFirst(t *blockedClass, first firstRanks, at time.Time) {
	if t == nil {
		return
	}
	b.look(t)
	if first.has(t.class.rank) {
		t.class.retryAt = earliest(t.class.retryAt, at)
		t.left.retryAll(at)
		b.retryFirst(t.right, first, at)
	} else {
		b.retryFirst(t.left, first, at)
	}
	t.sum()
}

// nextAfter returns when the first class is due after that time; zero for none.
func (b *blockedClasses) nextAfter(now time.Time) time.Time { return b.nextOf(b.root, now) }

func (b *blockedClasses) nextOf(t *blockedClass, now time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	if !isDue(t.next, now) {
		return t.next
	}
	b.look(t)
	next := earliest(b.nextOf(t.left, now), b.nextOf(t.right, now))
	if isDue(t.class.retryAt, now) {
		return next
	}
	return earliest(next, t.class.retryAt)
}

// look counts that a class is looked at.
func (b *blockedClasses) look(t *blockedClass) {
	b.looked++
	t.push()
}
