package placement

import "slices"

// try looks for places pod by pod. It is for the rare gang whose rules are on
// labels whose domains overlap, such as one on zones and one on models of GPUs:
// there the numbers in a domain do not add up. Pods of a kind are placed in the
// order of nodes, so that no two trials differ by their names only.
func (s *search) try(nodes []*node) answer {
	t := &trial{search: s, nodes: nodes, free: make([]vector, len(nodes)), on: make([]counts, len(nodes)), tops: map[string]*topology{}}
	for i, n := range nodes {
		t.free[i], t.on[i] = n.free, make(counts, len(s.kinds))
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

type trial struct {
	*search
	look  []int // by kind: the steps of looking at one node
	nodes []*node
	free  []vector
	on    []counts
	tops  map[string]*topology
}

// place places the done-th pod of a kind and all that follow, not before a node.
func (t *trial) place(kind, done, from int) bool {
	if kind == len(t.kinds) {
		t.spend(len(t.rules) * (1 + len(t.nodes)/8))
		return !t.spent() && t.obeyed()
	}
	if done == t.most[kind] {
		return t.place(kind+1, 0, 0)
	}
	for i := from; i < len(t.nodes); i++ {
		t.spend(t.look[kind])
		if t.spent() {
			return false
		}
		k := t.kinds[kind]
		if t.on[i][kind] >= k.most || k.on(t.nodes[i].group, 1) == 0 || k.fits(t.free[i], 1) == 0 || !t.allowed(kind, i) {
			continue
		}
		before := t.free[i]
		t.free[i] = k.minus(before, 1)
		t.on[i][kind]++
		if t.place(kind, done+1, i) {
			return true
		}
		t.on[i][kind]--
		t.free[i] = before
	}
	return false
}

// costOfLook is what it costs to see whether a node takes one more pod of a kind:
// each rule on it is asked, and most of them count pods on all nodes.
func (t *trial) costOfLook(kind int) int {
	counted := 1
	for _, r := range t.rules {
		switch {
		case r.key == perNode || !slices.Contains(r.kinds, kind):
		case r.what == apart:
			counted++
		case r.what == bind:
			counted += 2 * len(r.kinds)
		}
	}
	return 1 + len(t.rules)/8 + counted*len(t.nodes)/16
}

// in counts the pods of a kind in a node's domain.
func (t *trial) in(r rule, node, kind int) int {
	if r.key == perNode {
		return t.on[node][kind]
	}
	top, pods := t.tops[r.key], 0
	for i, n := range t.nodes {
		if top.of[n.slot] == top.of[t.nodes[node].slot] {
			pods += t.on[i][kind]
		}
	}
	return pods
}

// allowed reports whether rules that only ever get broken let one more pod onto
// a node.
func (t *trial) allowed(kind, node int) bool {
	for _, r := range t.rules {
		if !slices.Contains(r.kinds, kind) {
			continue
		}
		bare := r.key != perNode && t.tops[r.key].of[t.nodes[node].slot] == none
		switch r.what {
		case apart:
			other := r.kinds[0] + r.kinds[1] - kind
			if !bare && t.in(r, node, other) > 0 {
				return false
			}
		case bind:
			if bare {
				return false
			}
			for _, k := range r.kinds {
				total := 0
				for i := range t.nodes {
					total += t.on[i][k]
				}
				if total != t.in(r, node, k) {
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

// obeyed reports whether the finished trial obeys the rules on numbers.
func (t *trial) obeyed() bool {
	for i, r := range t.rules {
		if r.what != spread && r.what != slice {
			continue
		}
		per := make([]int, len(t.tops[r.key].values))
		for j, n := range t.nodes {
			if pods := t.on[j][r.kinds[0]]; pods > 0 {
				per[t.tops[r.key].of[n.slot]] += pods
			}
		}
		if r.what == slice {
			if slices.ContainsFunc(per, func(pods int) bool { return pods%r.size != 0 }) {
				return false
			}
			continue
		}
		most, least, domains := 0, int(^uint(0)>>1), 0
		for number, counts := range t.counted[i] {
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
