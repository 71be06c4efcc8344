package placement

import (
	"cmp"
	"slices"
)

// triedDomains bounds the domains that packing tries for a gang that must be in one;
// the exact search tries all.
const triedDomains = 8

// level is the domains of a label in which pods of a kind are placed in multiples of
// unit, in as few domains as possible.
type level struct {
	topology *topology
	unit     int
	soft     bool // it may be left where domains do not suffice
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
			levels = append(levels, p.levelOf(r.key, unit, true))
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
// largest first, and the rest in the smallest that takes it.
func (p *packing) fillLevels(kind, pods int, nodes []*node, levels []level) bool {
	if len(levels) == 0 {
		return p.fill(kind, pods, nodes)
	}
	unit := levels[0].unit
	shares := p.shares(levels[0].topology, nodes)
	for i := range shares {
		shares[i].pods = p.capacity(kind, shares[i].nodes, levels[1:], 1<<30) / unit * unit
	}
	slices.SortStableFunc(shares, func(a, b share) int { return cmp.Compare(b.pods, a.pods) })
	for pods > 0 && len(shares) > 0 && shares[0].pods > 0 {
		i := p.narrowest(kind, pods, shares, levels)
		part := min(pods, shares[i].pods)
		if !p.fillLevels(kind, part, shares[i].nodes, levels[1:]) {
			return false
		}
		pods -= part
		if i == 0 { // as nearly always: the others stay where they are
			shares = shares[1:]
		} else {
			shares = slices.Delete(shares, i, i+1)
		}
	}
	if pods > 0 && levels[0].soft {
		return p.fillLevels(kind, pods, nodes, levels[1:])
	}
	return pods == 0
}

// narrowest returns which share of the first level comes next: the largest, or one that takes all
// pods. Of these it is the smallest. For a whole pod set it is, as in Kueue, the one with the
// smallest domain of an inner preferred level that takes all pods, the innermost level first.
func (p *packing) narrowest(kind, pods int, shares []share, levels []level) int {
	if shares[0].pods < pods {
		return 0
	}
	last := 0
	for last+1 < len(shares) && shares[last+1].pods >= pods {
		last++
	}
	if !levels[0].soft || pods < p.kinds[kind].count {
		return last
	}
	for at := len(levels) - 1; at > 0; at-- {
		chosen, least := 0, 0
		for i := last; i >= 0 && levels[at].soft; i-- {
			if room := p.leastRoom(kind, pods, shares[i].nodes, levels[at:]); room > 0 && (least == 0 || room < least) {
				chosen, least = i, room
			}
		}
		if least > 0 {
			return chosen
		}
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

// fillOneDomain places all kinds of a bind rule in one domain, the one with the least
// room left afterwards.
func (p *packing) fillOneDomain(r *rule) bool {
	type candidate struct {
		share
		spare int
	}
	var candidates []candidate
	for _, s := range p.shares(p.fleet.topologyOf(r.key), p.fleet.inOrder()) {
		spare := 0
		for _, k := range r.kinds {
			count := p.kinds[k].count
			room := p.capacity(k, s.nodes, p.levelsOf(k), 1<<30)
			if room < count {
				spare = -1
				break
			}
			spare += room - count
		}
		if spare >= 0 {
			candidates = append(candidates, candidate{s, spare})
		}
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int { return cmp.Compare(a.spare, b.spare) })
	before := p.copyBins()
	for _, c := range candidates[:min(len(candidates), triedDomains)] {
		if p.fillAll(r.kinds, c.nodes) {
			return true
		}
		p.bins = before
		before = p.copyBins()
	}
	return false
}

func (p *packing) fillAll(kinds []int, nodes []*node) bool {
	for _, k := range p.hardestFirst() {
		if slices.Contains(kinds, k) && !p.fillLevels(k, p.kinds[k].count, nodes, p.levelsOf(k)) {
			return false
		}
	}
	return true
}
