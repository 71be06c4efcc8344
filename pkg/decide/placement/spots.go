package placement

import (
	"cmp"
	"container/heap"
	"slices"
)

// spot is a candidate for the next pod: equal nodes, or one on which this gang has
// pods.
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

// first returns the first node of a spot without pods of the gang, nil when there is
// none. It drops those before it.
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

// spots is a heap of the candidates for the next pod of a kind, the best on top.
type spots struct {
	*packing
	kind    int
	heap    []*spot
	classes []classCursor
}

// classCursor is how far the groups of a class have been compared.
type classCursor struct {
	class *class
	next  int
}

// batch bounds how many groups of a class are compared at a time, so that the cost of a
// placement does not depend on the number of nodes. The fullest come first.
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

// more compares further groups. It reports whether there were any.
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

// addBin adds a node with pods of the gang, if it takes another one.
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

// weigh computes the cost of a spot and puts it onto the heap.
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

// Less puts first the spot of least cost, then the fullest node, then the first by
// name. Pods without devices avoid nodes that have some.
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
