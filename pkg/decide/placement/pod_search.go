package placement

import "slices"

// try searches pod by pod. It is for the rare gang with rules on labels whose domains
// overlap, such as zones and models of GPUs: there the numbers in domains do not add
// up. Pods of a kind are placed in the order of nodes, so that no two trials differ by
// names only.
func (s *search) try(nodes []*node) answer {
	t := &podSearch{search: s, nodes: nodes, free: make([]vector, len(nodes)), on: make([]countVector, len(nodes)), tops: map[string]*topology{}}
	for i, n := range nodes {
		t.free[i], t.on[i] = n.free, make(countVector, len(s.kinds))
	}
	for i, key := range s.levels {
		t.tops[key] = s.topologies[i]
	}
	for k := range s.kinds {
		t.look = append(t.look, t.costOfLook(k))
	}
	switch {
	case t.place(0, 0, 0):
		var places []place
		for i, pods := range t.on {
			if slices.ContainsFunc(pods, func(n int) bool { return n > 0 }) {
				places = append(places, place{nodes[i], slices.Clone(pods)})
			}
		}
		return answer{outcome: Fits, places: places}
	case s.spent():
		return answer{outcome: Unknown}
	}
	return answer{outcome: DoesNotFit}
}

type podSearch struct {
	*search
	look  []int // by kind: the steps of looking at one node
	nodes []*node
	free  []vector
	on    []countVector
	tops  map[string]*topology
}

// place places the done-th pod of a kind and all that follow, on nodes from a given one
// on.
func (s *podSearch) place(kind, done, from int) bool {
	if kind == len(s.kinds) {
		s.spend(len(s.rules) * (1 + len(s.nodes)/8))
		return !s.spent() && s.obeyed()
	}
	if done == s.most[kind] {
		return s.place(kind+1, 0, 0)
	}
	for i := from; i < len(s.nodes); i++ {
		s.spend(s.look[kind])
		if s.spent() {
			return false
		}
		k := s.kinds[kind]
		if s.on[i][kind] >= k.most || k.on(s.nodes[i].group, 1) == 0 || k.fits(s.free[i], 1) == 0 || !s.allowed(kind, i) {
			continue
		}
		before := s.free[i]
		s.free[i] = k.minus(before, 1)
		s.on[i][kind]++
		if s.place(kind, done+1, i) {
			return true
		}
		s.on[i][kind]--
		s.free[i] = before
	}
	return false
}

// costOfLook is the cost, in steps, to check whether a node takes another pod of a
// kind: each rule on the kind is checked, and most of them count pods on all nodes.
func (s *podSearch) costOfLook(kind int) int {
	counted := 1
	for _, r := range s.rules {
		switch {
		case r.key == perNode || !slices.Contains(r.kinds, kind):
		case r.kind == apart:
			counted++
		case r.kind == bind:
			counted += 2 * len(r.kinds)
		}
	}
	return 1 + len(s.rules)/8 + counted*len(s.nodes)/16
}

// in counts the pods of a kind in a node's domain.
func (s *podSearch) in(r rule, node, kind int) int {
	if r.key == perNode {
		return s.on[node][kind]
	}
	top, pods := s.tops[r.key], 0
	for i, n := range s.nodes {
		if top.of[n.slot] == top.of[s.nodes[node].slot] {
			pods += s.on[i][kind]
		}
	}
	return pods
}

// allowed reports whether the rules that more pods can only break admit another pod on
// a node.
func (s *podSearch) allowed(kind, node int) bool {
	for _, r := range s.rules {
		if !slices.Contains(r.kinds, kind) {
			continue
		}
		bare := r.key != perNode && s.tops[r.key].of[s.nodes[node].slot] == none
		switch r.kind {
		case apart:
			other := r.kinds[0] + r.kinds[1] - kind
			if !bare && s.in(r, node, other) > 0 {
				return false
			}
		case bind:
			if bare {
				return false
			}
			for _, k := range r.kinds {
				total := 0
				for i := range s.nodes {
					total += s.on[i][k]
				}
				if total != s.in(r, node, k) {
					return false
				}
			}
		default:
			if bare {
				return false
			}
		}
	}
	return true
}

// obeyed reports whether the finished placement obeys the rules on numbers.
func (s *podSearch) obeyed() bool {
	for i, r := range s.rules {
		if r.kind != spread && r.kind != slice {
			continue
		}
		per := make([]int, len(s.tops[r.key].values))
		for j, n := range s.nodes {
			if pods := s.on[j][r.kinds[0]]; pods > 0 {
				per[s.tops[r.key].of[n.slot]] += pods
			}
		}
		if r.kind == slice {
			if slices.ContainsFunc(per, func(pods int) bool { return pods%r.size != 0 }) {
				return false
			}
			continue
		}
		most, least, domains := 0, int(^uint(0)>>1), 0
		for number, counts := range s.counted[i] {
			if counts {
				most, least, domains = max(most, per[number]), min(least, per[number]), domains+1
			}
		}
		if domains < r.minDomains {
			least = 0
		}
		if most-least > r.size {
			return false
		}
	}
	return true
}
