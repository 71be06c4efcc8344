package placement

import "slices"

// newSearch makes a search for some kinds of a problem, by index, and the rules among
// them.
func (p *problem) newSearch(kinds []int) *search {
	s := &search{
		fleet: p.fleet, left: &p.left,
		forms: map[string]*form{}, numbers: map[*form]int{}, leaves: map[leafKey]*form{},
	}
	for _, k := range kinds {
		s.kinds = append(s.kinds, &p.kinds[k])
		s.most = append(s.most, p.kinds[k].count)
	}
	for _, r := range p.rules {
		among := r
		among.kinds = nil
		for _, k := range r.kinds {
			if i := slices.Index(kinds, k); i >= 0 {
				among.kinds = append(among.kinds, i)
			}
		}
		if r.kind != prefer && (len(among.kinds) == len(r.kinds) || r.kind == bind && slices.ContainsFunc(r.owners, func(k int) bool { return slices.Contains(kinds, k) })) {
			s.rules = append(s.rules, among)
		}
	}
	slices.SortStableFunc(s.rules, compareRules)
	return s
}

// run looks for places for all pods of the kinds.
func (s *search) run() answer {
	if slices.ContainsFunc(s.rules, func(r rule) bool { return r.kind == slice && s.most[r.kinds[0]]%r.size != 0 }) {
		return answer{outcome: DoesNotFit}
	}
	nodes := s.useful()
	s.spend((len(s.rules) + 1) * (len(nodes)/16 + 1)) // for each rule its domains are found
	if s.spent() {
		return answer{outcome: Unknown}
	}
	s.arrange(nodes)
	s.count(nodes)
	if !s.nested(nodes) {
		return s.try(nodes)
	}
	for i := range s.kinds {
		needs := 0
		for level, key := range s.levels {
			if slices.ContainsFunc(s.rules, func(r rule) bool { return r.kind != apart && r.key == key && slices.Contains(r.kinds, i) }) {
				needs |= 1 << level
			}
		}
		s.needs = append(s.needs, needs)
	}
	s.setUnits()
	whole := s.grow(nodes, root, 0, false, nil)
	if s.spent() { // the tree is not whole
		return answer{outcome: Unknown}
	}
	return s.tryFloors(whole, 0)
}

// useful returns the nodes that take a pod of any of the kinds.
func (s *search) useful() []*node {
	takes := map[*group]bool{}
	for _, c := range s.fleet.classList {
		for _, g := range c.groups {
			for _, k := range s.kinds {
				if k.on(g, 1) > 0 {
					takes[g] = true
					break
				}
			}
		}
	}
	var nodes []*node
	for _, n := range s.fleet.inOrder() {
		if takes[n.group] {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// count finds the domains that each spread counts.
func (s *search) count(useful []*node) {
	s.counted, s.empty, s.floor = make([][]bool, len(s.rules)), make([]int, len(s.rules)), make([]int, len(s.rules))
	for i, r := range s.rules {
		if r.key == perNode {
			continue
		}
		t := s.fleet.topologyOf(r.key)
		s.counted[i] = make([]bool, len(t.values))
		if r.kind != spread {
			continue
		}
		k := s.kinds[r.kinds[0]]
		for _, n := range s.fleet.inOrder() {
			if number := t.of[n.slot]; number != none && !s.counted[i][number] {
				s.counted[i][number] = n.Selects(&k.set.Template) && s.hasKeys(n, r.kinds[0])
			}
		}
		reached := make([]bool, len(t.values))
		for _, n := range useful {
			if number := t.of[n.slot]; number != none {
				reached[number] = true
			}
		}
		for number, counts := range s.counted[i] {
			if counts && !reached[number] {
				s.empty[i]++
			}
		}
	}
}

// hasKeys reports whether a node has the labels of all spreads of a kind.
func (s *search) hasKeys(n *node, kind int) bool {
	return !slices.ContainsFunc(s.rules, func(r rule) bool {
		if r.kind != spread || r.kinds[0] != kind {
			return false
		}
		_, labelled := n.Labels[r.key]
		return !labelled
	})
}

// tryFloors tries, for each spread, each least number that its domains may have.
func (s *search) tryFloors(whole *domain, at int) answer {
	for at < len(s.rules) && s.rules[at].kind != spread {
		at++
	}
	if at == len(s.rules) {
		return s.solve(whole)
	}
	r := s.rules[at]
	domains := 0
	for _, counts := range s.counted[at] {
		if counts {
			domains++
		}
	}
	count, highest := s.most[r.kinds[0]], 0
	if domains > 0 && domains >= r.minDomains && s.empty[at] == 0 {
		highest = count / domains
	}
	for floor := highest; floor >= 0 && domains*(floor+r.size) >= count; floor-- {
		s.floor[at] = floor
		if found := s.tryFloors(whole, at+1); found.outcome != DoesNotFit {
			return found // with a spent budget no other floor is answered either
		}
	}
	s.floor[at] = 0
	return answer{outcome: DoesNotFit}
}

// solve searches with given floors.
func (s *search) solve(whole *domain) answer {
	s.floors = slices.ContainsFunc(s.floor, func(floor int) bool { return floor > 0 })
	if s.spend(1 + len(s.numbers)/4); s.spent() {
		return answer{outcome: Unknown}
	}
	for fm := range s.numbers {
		fm.ready = nil
	}
	f := s.frontierOf(whole.form)
	if s.spent() { // what there is of the frontier is not all
		return answer{outcome: Unknown}
	}
	i := slices.IndexFunc(f.largest, func(c countVector) bool { return slices.Equal(c, s.most) })
	if i < 0 || !s.most.covers(f.low) {
		best := 0
		if len(s.kinds) == 1 && len(f.largest) > 0 {
			best = f.largest[0][0]
		}
		return answer{outcome: DoesNotFit, best: best}
	}
	var places []place
	s.assign(f, i, s.most, []*domain{whole}, &places)
	return answer{outcome: Fits, places: places}
}

// frontierOf returns the frontier of one domain of the form.
func (s *search) frontierOf(fm *form) *paretoFrontier {
	if fm.ready != nil {
		return fm.ready
	}
	own := &paretoFrontier{form: fm, spans: 1, low: make(countVector, len(s.kinds))}
	fm.ready = own
	if fm.level == leaf {
		own.largest, own.from = fm.largest, make([][2]int, len(fm.largest))
		return own
	}
	inner := &paretoFrontier{largest: []countVector{make(countVector, len(s.kinds))}, from: make([][2]int, 1), low: make(countVector, len(s.kinds))}
	for _, p := range fm.parts {
		s.spend(s.perCounts())
		if s.spent() {
			return own
		}
		if inner.spans == 0 {
			inner = s.times(s.frontierOf(p.form), p.n)
		} else if !s.enough(inner) {
			inner = s.sum(inner, s.times(s.frontierOf(p.form), p.n))
		}
	}
	if s.spent() {
		return own
	}
	own.left, own.low = inner, slices.Clone(inner.low)
	if s.spend(len(inner.largest) / 4); s.spent() { // the counts themselves are shared
		return own
	}
	own.largest, own.from = slices.Clone(inner.largest), make([][2]int, len(inner.largest))
	for i := range own.from {
		own.from[i] = [2]int{i, 0}
	}
	if fm.level != root && !fm.bare {
		s.applyRules(fm, own)
	}
	if !s.spent() {
		s.prune(own)
	}
	return own
}
