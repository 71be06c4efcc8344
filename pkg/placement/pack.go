package placement

import (
	"cmp"
	"container/heap"
	"maps"
	"slices"
)

// packing is places for a gang in the making: one node after the other, each the
// best for the next pod. It may fail where the exact search does not.
type packing struct {
	*problem
	typical []*expected
	weight  int64 // of typical, in pods
	bins    map[*node]bin
}

// bin is a node that this gang has taken something of. Bins are not changed.
type bin struct {
	free vector
	pods counts // by kind
}

// packable reports whether packing understands the gang's rules.
func (p *problem) packable() bool {
	bound := make([]int, len(p.kinds))
	for _, r := range p.rules {
		switch r.what {
		case spread:
			return false
		case slice:
			if p.kinds[r.kinds[0]].count%r.size != 0 {
				return false
			}
		case apart:
			if r.key != perNode {
				return false
			}
		case bind:
			for _, k := range r.kinds {
				if bound[k]++; bound[k] > 1 {
					return false
				}
			}
		}
	}
	return true
}

// pack places all kinds, the hardest first. It returns what it placed and the
// kind that it could not place whole, or nil.
func (p *problem) pack() (*packing, *kind) {
	k := &packing{problem: p, bins: make(map[*node]bin, len(p.kinds))}
	k.typical, k.weight = p.fleet.typicalPods()
	done := make([]bool, len(p.kinds))
	for _, i := range p.hardestFirst() {
		if done[i] {
			continue
		}
		if r := p.bound(i); r != nil {
			for _, j := range r.kinds {
				done[j] = true
			}
			if !k.fillOneDomain(r) {
				return k, &p.kinds[i]
			}
		} else if !k.fill(i, p.kinds[i].count, nil) {
			return k, &p.kinds[i]
		}
	}
	return k, nil
}

// hardestFirst orders kinds by what they ask of the dearest resources.
func (p *problem) hardestFirst() []int {
	order := make([]int, len(p.kinds))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := &p.kinds[i], &p.kinds[j]
		if byDevices := cmp.Compare(b.devices, a.devices); byDevices != 0 {
			return byDevices
		}
		for _, column := range p.fleet.columns.order {
			if order := cmp.Compare(b.asked(column), a.asked(column)); order != 0 {
				return order
			}
		}
		return 0
	})
	return order
}

func (k *kind) asked(column int) int64 {
	for _, a := range k.asks {
		if a.column == column {
			return a.amount
		}
	}
	return 0
}

// bound returns the rule that keeps a kind in one domain, nil when there is none.
func (p *problem) bound(kind int) *rule {
	for i, r := range p.rules {
		if r.what == bind && slices.Contains(r.kinds, kind) {
			return &p.rules[i]
		}
	}
	return nil
}

// spot is nodes that are alike, or one that this gang has taken something of.
type spot struct {
	free    vector
	devices int64
	// wasteful: the nodes have devices and the pod asks for none.
	wasteful bool
	cost     int64 // of placing a pod here, 0 without typical pods
	name     string
	single   *node
	rest     []*node // of nodes that are alike, those not looked at yet
	reversed bool    // rest is ordered last first
}

// first returns the first node of a spot that the gang has not touched, nil when
// there is none. Those before it are passed over for good.
func (s *spot) first(bins map[*node]bin) *node {
	for len(s.rest) > 0 {
		n := s.rest[0]
		if s.reversed {
			n = s.rest[len(s.rest)-1]
		}
		if _, touched := bins[n]; !touched {
			return n
		}
		if s.reversed {
			s.rest = s.rest[:len(s.rest)-1]
		} else {
			s.rest = s.rest[1:]
		}
	}
	return nil
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

// room returns how many pods of a kind a node takes beside what this gang has
// there, at most limit.
func (p *packing) room(kind int, n *node, limit int) int {
	k := &p.kinds[kind]
	taken, touched := p.bins[n]
	if !touched {
		return k.on(n.group, limit)
	}
	if k.on(n.group, 1) == 0 || p.conflicts(kind, taken.pods) {
		return 0
	}
	return k.fits(taken.free, min(limit, k.most-taken.pods[kind]))
}

// conflicts reports whether rules on single nodes keep a kind away from what is
// there.
func (p *problem) conflicts(kind int, there counts) bool {
	return slices.ContainsFunc(p.rules, func(r rule) bool {
		if r.what != apart || r.key != perNode || !slices.Contains(r.kinds, kind) {
			return false
		}
		return there[r.kinds[0]+r.kinds[1]-kind] > 0
	})
}

// put places one pod of a kind on a node.
func (p *packing) put(kind int, n *node) bin {
	taken, touched := p.bins[n]
	updated := bin{free: n.free, pods: make(counts, len(p.kinds))}
	if touched {
		updated.free = taken.free
		copy(updated.pods, taken.pods)
	}
	updated.free = p.kinds[kind].minus(updated.free, 1)
	updated.pods[kind]++
	p.bins[n] = updated
	return updated
}

// spots are where the next pod of a kind may go, as a heap, the best on top.
type spots struct {
	*packing
	kind    int
	heap    []*spot
	classes []classCursor
}

// classCursor is how far the groups of a class have been looked at.
type classCursor struct {
	class *class
	next  int
}

// batch bounds how many groups of a class are weighed at a time, so that one
// decision costs the same on any number of nodes. The fullest come first.
const batch = 96

func (q *spots) addGroups() {
	k := &q.kinds[q.kind]
	for n := range q.bins {
		q.addBin(n)
	}
	if k.unknown {
		return
	}
	for _, c := range q.fleet.classList {
		if k.filter.eligible(c.groups[0].nodes[0]) {
			first, _ := slices.BinarySearchFunc(c.groups, k.devices, func(g *group, devices int64) int { return cmp.Compare(g.devices, devices) })
			q.classes = append(q.classes, classCursor{c, first})
		}
	}
	q.more()
}

// more looks at groups not weighed yet. It reports whether some were found.
func (q *spots) more() bool {
	k := &q.kinds[q.kind]
	for i := range q.classes {
		cursor := &q.classes[i]
		for found := 0; cursor.next < len(cursor.class.groups) && found < batch; cursor.next++ {
			g := cursor.class.groups[cursor.next]
			if k.on(g, 1) > 0 {
				found++
				q.addSpot(&spot{free: g.free, devices: g.devices, rest: g.nodes, reversed: true})
			}
		}
	}
	return len(q.heap) > 0
}

func (q *spots) addNodes(nodes []*node) {
	k := &q.kinds[q.kind]
	alike := map[*group]*spot{}
	var order []*spot
	for _, n := range nodes {
		if _, touched := q.bins[n]; touched {
			q.addBin(n)
			continue
		}
		s, known := alike[n.group]
		if !known {
			if k.on(n.group, 1) > 0 {
				s = &spot{free: n.group.free, devices: n.group.devices}
				order = append(order, s)
			}
			alike[n.group] = s
		}
		if s != nil {
			s.rest = append(s.rest, n)
		}
	}
	for _, s := range order {
		q.addSpot(s)
	}
}

// addBin adds a node that the gang has touched, if it takes one more.
func (q *spots) addBin(n *node) {
	if q.room(q.kind, n, 1) > 0 {
		free := q.bins[n].free
		q.weigh(&spot{free: free, devices: q.fleet.columns.devices(free), single: n}, n)
	}
}

func (q *spots) addSpot(s *spot) {
	if first := s.first(q.bins); first != nil {
		q.weigh(s, first)
	}
}

// weigh puts a spot onto the heap.
func (q *spots) weigh(s *spot, n *node) {
	k := &q.kinds[q.kind]
	s.name = n.Name
	s.wasteful = k.devices == 0 && n.devices
	if s.devices > 0 && len(q.typical) > 0 {
		after := k.minus(s.free, 1)
		more := q.fleet.stranded(q.typical, after, n) - q.fleet.stranded(q.typical, s.free, n)
		s.cost = Cost(more, q.weight, s.devices, 1, after.at(q.fleet.cpu))
	}
	heap.Push(q, s)
}

// placeOne places a pod on the best spot.
func (q *spots) placeOne() {
	best := heap.Pop(q).(*spot)
	n := best.single
	if n == nil {
		n = best.first(q.bins)
	}
	q.put(q.kind, n)
	if following := best.first(q.bins); following != nil {
		best.name = following.Name
		heap.Push(q, best)
	}
	q.addBin(n)
}

func (q *spots) Len() int      { return len(q.heap) }
func (q *spots) Swap(i, j int) { q.heap[i], q.heap[j] = q.heap[j], q.heap[i] }
func (q *spots) Push(x any)    { q.heap = append(q.heap, x.(*spot)) }
func (q *spots) Pop() any {
	last := q.heap[len(q.heap)-1]
	q.heap = q.heap[:len(q.heap)-1]
	return last
}

// Less puts first what costs the least, then the fullest node, then
// the first by name. Pods without devices keep off nodes that have some.
func (q *spots) Less(i, j int) bool {
	a, b := q.heap[i], q.heap[j]
	switch {
	case a.wasteful != b.wasteful:
		return b.wasteful
	case a.cost != b.cost:
		return a.cost < b.cost
	case a.devices != b.devices:
		return a.devices < b.devices
	}
	for _, column := range q.fleet.columns.order {
		if x, y := a.free.at(column), b.free.at(column); x != y {
			return x < y
		}
	}
	return a.name < b.name
}

// copyBins returns the bins as they are, to return to.
func (p *packing) copyBins() map[*node]bin { return maps.Clone(p.bins) }
