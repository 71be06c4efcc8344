package placement

import (
	"cmp"
	"slices"
)

// level is the domains of a label in which pods of a kind are placed in multiples of
// unit, in as few domains as possible.
type level struct {
	topology *topology
	unit     int
	soft     bool // it may be left where domains do not suffice
	within   bool // it is below the level that is asked for
	domains  int  // by which levels are nested
}

// levelsOf returns the levels for the slices and the preferred topology of a kind, the
// widest domains first.
func (p *packing) levelsOf(kind int) []level {
	var levels []level
	unit := 1
	for _, r := range p.rules {
		if r.kind == slice && r.kinds[0] == kind {
			unit = r.size
			levels = append(levels, p.levelOf(r.key, unit, false))
		}
	}
	preferred := len(levels)
	for _, r := range p.rules {
		if r.kind == prefer && r.kinds[0] == kind {
			preferredLevel := p.levelOf(r.key, unit, true)
			preferredLevel.within = r.within
			levels = append(levels, preferredLevel)
		}
	}
	for i := len(levels) - 2; i >= preferred; i-- { // those of a Topology, where nodes lack labels of inner ones
		levels[i].domains = min(levels[i].domains, levels[i+1].domains)
	}
	slices.SortStableFunc(levels, func(a, b level) int { return cmp.Compare(a.domains, b.domains) })
	return levels
}

func (p *packing) levelOf(key string, unit int, soft bool) level {
	t := p.fleet.topologyOf(key)
	return level{topology: t, unit: unit, soft: soft, domains: len(t.values)}
}

// share is a domain's nodes and how many pods of a kind they take.
type share struct {
	nodes []*node // by name
	pods  int
	room  int // without regard to units
}

// shares divides nodes into the domains of a level, without the nodes that lack the
// label.
func (p *packing) shares(t *topology, nodes []*node) []share {
	if len(p.at) < len(t.values) {
		p.at = make([]int, len(t.values))
	}
	var all []share
	for _, n := range nodes {
		number := t.of[n.slot]
		if number == none {
			continue
		}
		if p.at[number] == 0 {
			all = append(all, share{})
			p.at[number] = len(all)
		}
		s := &all[p.at[number]-1]
		s.nodes = append(s.nodes, n)
	}
	for i := range all { // a level has many domains, and few nodes of one above it
		p.at[t.of[all[i].nodes[0].slot]] = 0
	}
	return all
}

// fill places pods of a kind on nodes, all of the fleet when nodes is nil. It
// reports whether all have a place.
func (p *packing) fill(kind, pods int, nodes []*node) bool {
	if nodes == nil {
		if levels := p.levelsOf(kind); len(levels) > 0 {
			return p.fillLevels(kind, pods, p.fleet.inOrder(), levels)
		}
	}
	q := &spots{packing: p, kind: kind}
	if nodes == nil {
		q.addGroups()
	} else {
		q.addNodes(nodes)
	}
	for ; pods > 0; pods-- {
		if len(q.heap) == 0 && !q.more() {
			return false
		}
		q.placeOne()
	}
	return true
}

// capacity returns how many pods of a kind nodes take, at most limit.
func (p *packing) capacity(kind int, nodes []*node, levels []level, limit int) int {
	pods := 0
	if len(levels) == 0 {
		var last *group // neighbours are often alike
		lastRoom := 0
		for _, n := range nodes {
			_, touched := p.bins[n]
			if touched {
				pods += p.room(kind, n, limit)
			} else {
				if n.group != last {
					last, lastRoom = n.group, p.kinds[kind].on(n.group, limit)
				}
				pods += lastRoom
			}
			if pods >= limit {
				return limit
			}
		}
		return pods
	}
	unit := levels[0].unit
	for _, s := range p.shares(levels[0].topology, nodes) {
		pods += p.capacity(kind, s.nodes, levels[1:], limit) / unit * unit
		if pods >= limit {
			return limit
		}
	}
	return pods
}

// fillLevels places pods of a kind in as few domains as possible: whole domains, the
// largest first, and the rest in the smallest that takes it. Of the levels within, as in Kueue,
// those of all these domains are seen at once.
func (p *packing) fillLevels(kind, pods int, nodes []*node, levels []level) bool {
	switch {
	case pods == 0:
		return true
	case len(levels) == 0:
		return p.fill(kind, pods, nodes)
	}
	chosen, left := p.choose(kind, pods, nodes, levels)
	switch {
	case left > 0 && !levels[0].soft:
		return false
	case levels[0].soft && len(levels) > 1:
		within := []*node{} // nil would be all nodes of the fleet
		for _, s := range chosen {
			within = append(within, s.nodes...)
		}
		if !p.fillLevels(kind, pods-left, within, levels[1:]) {
			return false
		}
	default:
		for _, s := range chosen {
			if !p.fillLevels(kind, s.pods, s.nodes, levels[1:]) {
				return false
			}
		}
	}
	return left == 0 || p.fillLevels(kind, left, nodes, levels[1:])
}

// choose returns the domains of the first level for pods of a kind, with the pods that each takes, and
// how many pods are left.
func (p *packing) choose(kind, pods int, nodes []*node, levels []level) (chosen []share, left int) {
	unit := levels[0].unit
	shares := p.shares(levels[0].topology, nodes)
	for i := range shares {
		shares[i].room = p.capacity(kind, shares[i].nodes, levels[1:], 1<<30)
		shares[i].pods = shares[i].room / unit * unit
	}
	slices.SortStableFunc(shares, func(a, b share) int { return cmp.Or(cmp.Compare(b.pods, a.pods), cmp.Compare(a.room, b.room)) })
	for pods > 0 && len(shares) > 0 && shares[0].pods > 0 {
		i := p.narrowest(kind, pods, shares, levels)
		s := shares[i]
		s.pods = min(pods, s.pods)
		chosen, pods = append(chosen, s), pods-s.pods
		if i == 0 { // as nearly always: the others stay where they are
			shares = shares[1:]
		} else {
			shares = slices.Delete(shares, i, i+1)
		}
	}
	return chosen, pods
}

// narrowest returns which share of the first level comes next: the largest, or one that takes all
// pods. Of these it is the smallest, and the first of equal ones. For a whole pod set it is, as in
// Kueue, the one with the smallest domain of an inner preferred level that takes all pods, the
// innermost level first.
func (p *packing) narrowest(kind, pods int, shares []share, levels []level) int {
	if shares[0].pods < pods {
		return 0
	}
	last := 0
	for last+1 < len(shares) && shares[last+1].pods >= pods {
		last++
	}
	for at := len(levels) - 1; at > 0 && levels[0].soft && pods == p.kinds[kind].count; at-- {
		chosen, least := 0, 0
		for i := last; i >= 0 && levels[at].soft && !levels[at].within; i-- {
			if room := p.leastRoom(kind, pods, shares[i].nodes, levels[at:]); room > 0 && (least == 0 || room < least) {
				chosen, least = i, room
			}
		}
		if least > 0 {
			return chosen
		}
	}
	for last > 0 && shares[last-1].pods == shares[last].pods {
		last--
	}
	return last
}

// leastRoom returns how many pods the smallest domain of the first level takes, among nodes, of
// those that take all pods; zero for none.
func (p *packing) leastRoom(kind, pods int, nodes []*node, levels []level) int {
	least := 0
	for _, s := range p.shares(levels[0].topology, nodes) {
		if room := p.capacity(kind, s.nodes, levels[1:], 1<<30); room >= pods && (least == 0 || room < least) {
			least = room
		}
	}
	return least
}
