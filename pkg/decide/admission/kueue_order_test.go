package admission_test

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// TestTheNearestQuotaGoesFirst: the gang that borrows from the nearest cohort comes first, whatever
// its priority, then priority and submission decide.
func TestTheNearestQuotaGoesFirst(t *testing.T) {
	t.Parallel()
	nearer := 0
	drawn(t, func() bool { return nearer > 0 }, func(t *rapid.T) {
		f := drawFamilyTree(t, []int64{1}, quota.BestEffortFIFO)
		got := f.admitted(t, f.config(t, false, false))
		var want []workload.ID
		for {
			heads := f.heads()
			if len(heads) == 0 {
				break
			}
			next := nearest(heads)
			if slices.ContainsFunc(heads, func(c *contender) bool { return c != next && c.before(next) }) {
				nearer++
			}
			if next.of.waiting = next.of.waiting[1:]; next.fits(0) {
				next.of.used += next.gpus
				want = append(want, next.id)
			}
		}
		if !slices.Equal(want, got) {
			t.Fatalf("admitted are %v, want %v", got, want)
		}
	})
}

// drawn checks a property until it has been tried in the cases that it is about.
func drawn(t *testing.T, tried func() bool, check func(*rapid.T)) {
	t.Helper()
	for rounds := 0; rounds < 40 && !tried(); rounds++ {
		rapid.Check(t, check)
	}
	if !tried() {
		t.Error("the draws have no case that the property is about")
	}
}

// share is the weighted share of a member of a cohort with a gang of its queues: what it uses beyond
// its quota, by its weight. All of a tree can lend the same, so that counts for nothing. With weight
// zero it is more than all others, and of two of these what is used decides.
type share struct {
	zero        bool
	beyond, per int64
}

func (r *relative) shareWith(gpus int64) share {
	nominal, used := r.sum()
	s := share{beyond: max(0, used+gpus-nominal), per: r.weight}
	if s.zero = r.weight == 0 && s.beyond > 0; r.weight == 0 {
		s.per = 1
	}
	return s
}

func (s share) compare(other share) int {
	if s.zero != other.zero {
		return map[bool]int{true: 1, false: -1}[s.zero]
	}
	return cmp.Compare(s.beyond*other.per, other.beyond*s.per)
}

// fairest is the gang that comes first of those below: in each cohort that of the member with the
// smallest share.
func (r *relative) fairest() (first *contender) {
	if len(r.waiting) > 0 {
		return r.waiting[0]
	}
	var least share
	for _, m := range r.members {
		c := m.fairest()
		if c == nil {
			continue
		}
		with := m.shareWith(c.gpus)
		by := -1
		if first != nil {
			by = with.compare(least)
		}
		if by < 0 || by == 0 && c.before(first) {
			first, least = c, with
		}
	}
	return first
}

// TestTheFairestGoesFirst: under fair sharing the gang of the branch with the smallest share comes
// first. Where that is the same for a reason other than use, as of weights of zero, use decides.
func TestTheFairestGoesFirst(t *testing.T) {
	t.Parallel()
	const huge = 1_000_000_000
	zeros, larger := 0, 0
	drawn(t, func() bool { return zeros > 0 && larger > 0 }, func(t *rapid.T) {
		weights := rapid.SampledFrom([][]int64{{1, 2}, {0}, {0, 1, 2}, {huge, 2 * huge}}).Draw(t, "weights")
		f := drawFamilyTree(t, weights, quota.BestEffortFIFO)
		got := f.admitted(t, f.config(t, true, false))
		var want []workload.ID
		for len(f.heads()) > 0 {
			heads, next := f.heads(), f.root.fairest()
			for _, c := range heads {
				if c != next && c.before(next) && weights[0] == 0 {
					zeros++
				} else if c != next && c.before(next) && weights[0] == huge {
					larger++
				}
			}
			if next.of.waiting = next.of.waiting[1:]; next.fits(0) {
				next.of.used += next.gpus
				want = append(want, next.id)
			}
		}
		if !slices.Equal(want, got) {
			t.Fatalf("with weights %v admitted are %v, want %v", weights, got, want)
		}
	})
}

// TestQuotaIsKeptForStrictHeads: what the head of a StrictFIFO queue waits for is not lent to those
// that are tried after it, unless its queue is sure to take it back.
func TestQuotaIsKeptForStrictHeads(t *testing.T) {
	t.Parallel()
	spared := 0
	drawn(t, func() bool { return spared > 0 }, func(t *rapid.T) {
		f := drawFamilyTree(t, []int64{1}, quota.StrictFIFO)
		got := f.admitted(t, f.config(t, false, true))
		var want []workload.ID
		for {
			heads := slices.DeleteFunc(f.heads(), func(c *contender) bool { return c.of.blocked })
			if len(heads) == 0 {
				break
			}
			next, kept := nearest(heads), int64(0)
			for _, q := range f.queues {
				if q.blocked && q.reclaim != quota.Any && next.level() > 0 && nearest([]*contender{next, q.waiting[0]}) != next {
					kept += q.waiting[0].reserves()
				}
			}
			if !next.fits(kept) {
				next.of.blocked = true
				if next.fits(0) {
					spared++
				}
				continue
			}
			next.of.used += next.gpus
			next.of.waiting = next.of.waiting[1:]
			want = append(want, next.id)
		}
		if !slices.Equal(want, got) {
			t.Fatalf("admitted are %v, want %v", got, want)
		}
	})
}

// reserves is what is kept for a head that waits for quota: what it asks for or, where it need not
// borrow, what is left of the nominal quota. Nothing is kept for what can never be within quota.
func (c *contender) reserves() int64 {
	nominal, _ := c.of.root().sum()
	switch {
	case c.gpus > nominal, c.fits(0):
		return 0
	case c.level() == 0:
		return max(0, min(c.gpus, c.of.nominal-c.of.used))
	}
	return c.gpus
}
