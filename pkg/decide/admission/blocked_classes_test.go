package admission

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster.dev/muster/pkg/spec/workload"
)

// drawFirst draws the first ranks of an order.
func drawFirst(t *rapid.T) firstRanks {
	switch rapid.IntRange(0, 4).Draw(t, "first") {
	case 0:
		return firstRanks{all: true}
	case 1:
		return firstRanks{none: true}
	case 2:
		return firstRanks{priority: rapid.Int32Range(0, 3).Draw(t, "above"), order: math.MinInt64}
	}
	return firstRanks{priority: rapid.Int32Range(0, 3).Draw(t, "priority"), order: rapid.Int64Range(0, 20).Draw(t, "order")}
}

// drawChange changes what concerns a class, by the methods that the package uses.
func drawChange(t *rapid.T, class *equivalenceClass, now time.Time) {
	at := now.Add(time.Duration(rapid.IntRange(-3, 6).Draw(t, "seconds")) * time.Second)
	switch rapid.IntRange(0, 8).Draw(t, "change") {
	case 0:
		class.retryBy(at)
	case 1:
		class.retryOnlyBy(at)
	case 2:
		class.tried(rapid.Int64Range(notHopeless, 3).Draw(t, "hopeless"))
	case 3:
		class.mayBeHelped()
	case 4:
		class.exceeds(overQuota{})
	case 5:
		class.spares()
	case 6:
		class.keptBy(&headReservation{})
	case 7:
		class.keptBy(nil)
	default:
		class.triedAgain()
	}
}

// TestBlockedClassesAreFound: whatever comes, goes and changes, each question has the answer of
// one that looks at all classes.
func TestBlockedClassesAreFound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q := &queue{}
		var there []*equivalenceClass
		retry := map[*equivalenceClass]time.Time{} // what retryAt is to be
		now := time.Unix(1000, 0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch kind := rapid.IntRange(0, 7).Draw(t, "step"); {
			case kind <= 2 || len(there) == 0:
				class := &equivalenceClass{queue: q, priority: rapid.Int32Range(0, 3).Draw(t, "priority")}
				class.members = []*Waiting{{Order: rapid.Int64Range(0, 20).Draw(t, "order")}}
				if rapid.Bool().Draw(t, "beyond") {
					class.members[0].beyond = []string{"c"}
				}
				q.blocked.add(class)
				there = append(there, class)
			case kind == 3:
				i := rapid.IntRange(0, len(there)-1).Draw(t, "gone")
				q.blocked.remove(there[i])
				if !there[i].retryAt.Equal(retry[there[i]]) {
					t.Fatalf("a class that was removed is due at %v, want %v", there[i].retryAt, retry[there[i]])
				}
				there = slices.Delete(there, i, i+1)
			case kind <= 5:
				class := rapid.SampledFrom(there).Draw(t, "class")
				q.blocked.settle()
				drawChange(t, class, now)
				retry[class] = class.retryAt
			default:
				first, at := drawFirst(t), now.Add(time.Duration(rapid.IntRange(1, 9).Draw(t, "after"))*time.Second)
				q.blocked.retryBy(first, at)
				for _, class := range there {
					if first.has(class.rank) && (retry[class].IsZero() || at.Before(retry[class])) {
						retry[class] = at
					}
				}
			}
			compareAnswers(t, q, there, retry, now)
		}
	})
}

func compareAnswers(t *rapid.T, q *queue, there []*equivalenceClass, retry map[*equivalenceClass]time.Time, now time.Time) {
	same := func(what string, got []*equivalenceClass, is func(*equivalenceClass) bool) {
		want := 0
		for _, class := range there {
			if is(class) {
				want++
				if !slices.Contains(got, class) {
					t.Fatalf("%s: a class of priority %d and order %d is not found", what, class.priority, class.members[0].Order)
				}
			}
		}
		if len(got) != want {
			t.Fatalf("%s: %d classes are found, want %d", what, len(got), want)
		}
		if !slices.IsSortedFunc(got, func(a, b *equivalenceClass) int { return before(asFirst(a), asFirst(b)) }) {
			t.Fatalf("%s: the classes are not in order", what)
		}
	}
	concern := func(class *equivalenceClass) concerns {
		read := blockedClass{class: class}
		read.read()
		return read.own
	}
	by := rapid.SampledFrom([]concerns{0, always, anyRoom, moreQuota, keptBack, otherRanges, anyRoom | keptBack}).Draw(t, "by")
	same("concerned", q.blocked.concerned(by, now), func(class *equivalenceClass) bool {
		return concern(class)&by != 0 || isDue(retry[class], now)
	})
	first, limit := drawFirst(t), rapid.Int64Range(0, 4).Draw(t, "departed")
	same("tried before", q.blocked.triedBefore(limit), func(class *equivalenceClass) bool { return class.triedPreemption && class.hopelessAt < limit })
	same("tried from", q.blocked.triedFrom(first), func(class *equivalenceClass) bool { return class.triedPreemption && !first.has(class.rank) })
	same("among", q.blocked.among(first, by), func(class *equivalenceClass) bool { return concern(class)&by != 0 && first.has(class.rank) })
	var next time.Time
	for _, class := range there {
		if !isDue(retry[class], now) {
			next = earliest(next, retry[class])
		}
	}
	if got := q.blocked.nextAfter(now); !got.Equal(next) {
		t.Fatalf("the next one is due at %v, want %v", got, next)
	}
}

// asFirst returns the first gang of a class for before.
func asFirst(class *equivalenceClass) *Waiting {
	return &Waiting{Workload: &workload.Workload{Priority: class.priority}, Order: class.members[0].Order}
}

// TestTheFewerOfTwo: the first ranks of two orders that both have are those of the smaller one.
func TestTheFewerOfTwo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawFirst(t), drawFirst(t)
		r := classRank{priority: rapid.Int32Range(0, 3).Draw(t, "of priority"), order: rapid.Int64Range(0, 20).Draw(t, "of order"), number: 1}
		if got, want := a.fewer(b).has(r), a.has(r) && b.has(r); got != want {
			t.Fatalf("the fewer of %+v and %+v has %+v: %v, want %v", a, b, r, got, want)
		}
	})
}
