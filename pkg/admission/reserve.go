package admission

import (
	"cmp"
	"slices"
	"time"

	"muster.dev/muster/pkg/placement"
)

// ends is when a started gang is expected to have ended, and whether that is
// known. Whoever is being torn down may go at any moment. Whoever is over time is
// given some grace, then nothing is known of its end any more.
func (g *Started) ends(now time.Time) (at time.Time, known bool) {
	if g.Going {
		return now, true
	}
	if g.Kept || g.RunTime <= 0 {
		return time.Time{}, false
	}
	declared := g.Admitted.Add(g.RunTime)
	if !now.After(declared) {
		return declared, true
	}
	late := declared.Add(max(time.Minute, g.RunTime/10))
	return late, !now.After(late)
}

// expected is a started gang with its expected end.
type expected struct {
	*Started
	at    time.Time
	known bool
}

// inOrderOfEnd returns the gangs of a cluster in the order in which they are
// expected to end: the known ends first; of the others those that began first.
// Gangs that began after the nodes were begun to be drained come last.
func (d *decision) inOrderOfEnd(cluster string, drained time.Time) []expected {
	var order []expected
	for _, g := range d.state.started {
		if g.Cluster == cluster {
			at, known := g.ends(d.now)
			order = append(order, expected{g, at, known})
		}
	}
	group := func(e expected) int {
		switch {
		case !drained.IsZero() && e.Admitted.After(drained):
			return 2
		case !e.known:
			return 1
		}
		return 0
	}
	slices.SortFunc(order, func(a, b expected) int {
		byGroup := cmp.Compare(group(a), group(b))
		if byGroup == 0 && group(a) == 0 {
			byGroup = a.at.Compare(b.at)
		}
		return cmp.Or(byGroup, a.Admitted.Compare(b.Admitted), cmp.Compare(a.Order, b.Order))
	})
	return order
}

// reserveHeads brings the holds up to date with what has changed. It reports
// whether somebody may pass now who was kept back by a hold that is over, or that
// was made anew.
//
// The hold of a head that is to be looked at again lasts until it has been. The
// hold of the head that is being looked at, if one is, is left as it is.
func (d *decision) reserveHeads(but *Waiting) (opened bool) {
	s := d.state
	for _, h := range slices.Clone(s.holds) {
		if w := h.head; w.bucket == nil || s.heldFor(w.queue) != w {
			opened = opened || len(h.behind) > 0
			d.moved = true
			s.unhold(h)
		}
	}
	var heads []*Waiting
	for _, q := range s.sorted {
		if w := s.heldFor(q); w != nil && w != but {
			heads = append(heads, w)
		}
	}
	slices.SortFunc(heads, before)
	for _, w := range heads {
		if h := s.holdOf(w); h == nil || h.stale || !h.start.IsZero() && d.now.After(h.start) {
			opened = opened || h != nil && len(h.behind) > 0
			d.reserve(w, h)
		}
	}
	return opened
}

// heldFor returns the head of a Backfill queue if it waits for nodes, as far as
// has been looked, nil for none.
func (s *State) heldFor(q *queue) *Waiting {
	if !q.backfills() || q.all.Len() == 0 {
		return nil
	}
	b := q.all.list[0]
	if w := b.head(); b.lacks != nil && (b.atOpen < 0 || s.holdOf(w) != nil) {
		return w
	}
	return nil
}

// reserve makes the hold of a head, in place of the one that it had; whom that kept
// back is looked at again. A hold
// without a cluster says that there is none: the head fits nowhere even when all
// gangs have ended, or nothing is known of their ends and the head has not
// waited long enough.
func (d *decision) reserve(w *Waiting, old *hold) {
	s := d.state
	made := &hold{head: w, variant: w.bucket.lacks}
	if old != nil {
		made.drained = old.drained
		s.unhold(old)
	}
	var best *hold
	for _, cluster := range s.clustersFor(w) {
		if found := d.reserveOn(w, made, cluster); found != nil && (best == nil || found.sooner(best)) {
			best = found
		}
	}
	if best != nil {
		made = best
	} else {
		made.drained = time.Time{}
	}
	if old != nil && made.sameAs(old) {
		made.told = old.told
	} else {
		d.noteMoved(made)
		d.moved = true
	}
	i, _ := slices.BinarySearchFunc(s.holds, made, func(a, b *hold) int { return before(a.head, b.head) })
	s.holds = slices.Insert(s.holds, i, made)
}

// sooner reports whether h has its places before other.
func (h *hold) sooner(other *hold) bool {
	if h.start.IsZero() != other.start.IsZero() {
		return other.start.IsZero()
	}
	if !h.start.Equal(other.start) {
		return h.start.Before(other.start)
	}
	return len(h.after) < len(other.after)
}

// reserveOn finds the fewest gangs, in the order of their ends, after whose end
// the head has places on the cluster.
func (d *decision) reserveOn(w *Waiting, made *hold, cluster string) *hold {
	fleet := d.state.fleets[cluster]
	order := d.inOrderOfEnd(cluster, made.drained)
	order = slices.DeleteFunc(order, func(e expected) bool { return e.Workload.ID == w.Workload.ID }) // a gang that grows goes on
	mark := fleet.Begin()
	defer fleet.Rollback(mark)
	for _, other := range d.state.holds {
		if other.cluster == cluster && other.binds(w) {
			fleet.Take(other.variant.w, other.places)
		}
	}
	needed := d.fewest(fleet, order, made)
	if needed < 0 {
		return nil
	}
	found := *made
	found.cluster, found.start = cluster, d.now
	known := made.drained.IsZero()
	for _, e := range order[:needed] {
		known = known && e.known
		if e.at.After(found.start) {
			found.start = e.at
		}
	}
	switch {
	case known:
		for needed < len(order) && order[needed].known && !order[needed].at.After(found.start) {
			needed++
		}
	case d.now.Before(w.patient()):
		return nil
	default:
		found.start = time.Time{}
		if found.drained.IsZero() {
			found.drained = d.now
		}
	}
	give(fleet, order[:needed])
	verdict, _ := d.solve(w.queue, fleet, found.variant.w)
	if verdict.Outcome != placement.Fits {
		return nil
	}
	found.places = verdict.Placements
	for _, e := range order[:needed] {
		found.after = append(found.after, e.Started)
	}
	return &found
}

func give(fleet *placement.Fleet, gangs []expected) {
	for _, e := range gangs {
		fleet.Give(e.Workload, e.Placements)
	}
}

// fewest returns how many gangs, from the first, have to end so that the head
// has places; -1 when it has none after all of them have. More room never hurts,
// so it doubles the number until it is enough and then halves the last stride.
func (d *decision) fewest(fleet *placement.Fleet, order []expected, h *hold) int {
	enough := func(from, to int) bool {
		mark := fleet.Begin()
		defer fleet.Rollback(mark)
		give(fleet, order[from:to])
		verdict, _ := d.solve(h.head.queue, fleet, h.variant.w)
		return verdict.Outcome == placement.Fits
	}
	mark := fleet.Begin()
	defer fleet.Rollback(mark)
	given, stride := 0, 1
	for {
		to := min(given+stride, len(order))
		if enough(given, to) {
			low := sortedSearch(given, to, func(n int) bool { return enough(given, n) })
			return low
		}
		if to == len(order) {
			return -1
		}
		give(fleet, order[given:to])
		given, stride = to, 2*stride
	}
}

// sortedSearch returns the least n of low < n <= high that is enough; high is.
func sortedSearch(low, high int, enough func(int) bool) int {
	for low+1 < high {
		if middle := (low + high) / 2; enough(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}
