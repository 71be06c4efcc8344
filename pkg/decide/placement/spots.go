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

func (s *spots) addGroups() {
	k := &s.kinds[s.kind]
	for n := range s.bins {
		s.addBin(n)
	}
	if k.unknown {
		return
	}
	for _, c := range s.fleet.classList {
		if k.filter.eligible(c.groups[0].nodes[0]) {
			first, _ := slices.BinarySearchFunc(c.groups, k.devices, func(g *group, devices int64) int { return cmp.Compare(g.devices, devices) })
			s.classes = append(s.classes, classCursor{c, first})
		}
	}
	s.more()
}

// more compares further groups. It reports whether there were any.
func (s *spots) more() bool {
	k := &s.kinds[s.kind]
	for i := range s.classes {
		cursor := &s.classes[i]
		for found := 0; cursor.next < len(cursor.class.groups) && found < batch; cursor.next++ {
			g := cursor.class.groups[cursor.next]
			if k.on(g, 1) > 0 {
				found++
				s.addSpot(&spot{free: g.free, devices: g.devices, rest: g.nodes, reversed: true})
			}
		}
	}
	return len(s.heap) > 0
}

func (s *spots) addNodes(nodes []*node) {
	k := &s.kinds[s.kind]
	alike := map[*group]*spot{}
	var order []*spot
	for _, n := range nodes {
		if _, touched := s.bins[n]; touched {
			s.addBin(n)
			continue
		}
		candidate, known := alike[n.group]
		if !known {
			if k.on(n.group, 1) > 0 {
				candidate = &spot{free: n.group.free, devices: n.group.devices}
				order = append(order, candidate)
			}
			alike[n.group] = candidate
		}
		if candidate != nil {
			candidate.rest = append(candidate.rest, n)
		}
	}
	for _, candidate := range order {
		s.addSpot(candidate)
	}
}

// addBin adds a node with pods of the gang, if it takes another one.
func (s *spots) addBin(n *node) {
	if s.room(s.kind, n, 1) > 0 {
		free := s.bins[n].free
		s.weigh(&spot{free: free, devices: s.fleet.columns.devices(free), single: n}, n)
	}
}

func (s *spots) addSpot(candidate *spot) {
	if first := candidate.first(s.bins); first != nil {
		s.weigh(candidate, first)
	}
}

// weigh computes the cost of a spot and puts it onto the heap.
func (s *spots) weigh(candidate *spot, n *node) {
	k := &s.kinds[s.kind]
	candidate.name = n.Name
	candidate.wasteful = k.devices == 0 && n.devices
	if candidate.devices > 0 && len(s.typical) > 0 {
		after := k.minus(candidate.free, 1)
		more := s.fleet.stranded(s.typical, after, n) - s.fleet.stranded(s.typical, candidate.free, n)
		candidate.cost = Cost(more, s.weight, candidate.devices, 1, after.at(s.fleet.cpu))
	}
	heap.Push(s, candidate)
}

// best returns the node of the best spot, nil when there is none.
func (s *spots) best() *node {
	if len(s.heap) == 0 {
		return nil
	}
	if n := s.heap[0].single; n != nil {
		return n
	}
	return s.heap[0].first(s.bins)
}

// placeOne places a pod on the best spot.
func (s *spots) placeOne() {
	n := s.best()
	best := heap.Pop(s).(*spot)
	s.put(s.kind, n)
	if following := best.first(s.bins); following != nil {
		best.name = following.Name
		heap.Push(s, best)
	}
	s.addBin(n)
}

func (s *spots) Len() int      { return len(s.heap) }
func (s *spots) Swap(i, j int) { s.heap[i], s.heap[j] = s.heap[j], s.heap[i] }
func (s *spots) Push(x any)    { s.heap = append(s.heap, x.(*spot)) }
func (s *spots) Pop() any {
	last := s.heap[len(s.heap)-1]
	s.heap = s.heap[:len(s.heap)-1]
	return last
}

// Less puts first the spot of least cost, then the fullest node, then the first by
// name. Pods without devices avoid nodes that have some.
func (s *spots) Less(i, j int) bool {
	a, b := s.heap[i], s.heap[j]
	switch {
	case a.wasteful != b.wasteful:
		return b.wasteful
	case a.cost != b.cost:
		return a.cost < b.cost
	case a.devices != b.devices:
		return a.devices < b.devices
	}
	for _, column := range s.fleet.columns.order {
		if x, y := a.free.at(column), b.free.at(column); x != y {
			return x < y
		}
	}
	return a.name < b.name
}
