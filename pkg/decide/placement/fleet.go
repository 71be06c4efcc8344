package placement

import (
	"cmp"
	"slices"

	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
)

// Fleet is the nodes of one cluster. It is not safe for concurrent use.
type Fleet struct {
	columns columns
	cpu     int // column of CPU
	nodes   map[string]*node
	slots   []*node // nil where a node was forgotten
	vacant  []int
	size    int   // nodes present
	idle    int64 // devices free on them, see Idle

	filters     []*filter
	filterByKey map[string]*filter
	uses        int64
	since       int64 // the value of uses when the gang at hand came
	classes     map[string]*class
	classList   []*class // by key
	changed     []*node  // to be filed again before the next search

	meta    int64 // the last that was given to a node
	changes int64 // counts changes of meta and of who is present
	byName  []*node
	listed  int64                // the value of changes byName is of
	domains map[string]*topology // by level
	asked   int64                // counts how often the domains of a level were asked for

	undoLog    []change // since the first savepoint
	savepoints []int    // lengths of undoLog
	forks      []fork

	unschedulable unschedulable
	demand        demand

	scratch []byte
}

// NewFleet returns a fleet without nodes.
func NewFleet() *Fleet {
	f := &Fleet{
		columns: newColumns(), nodes: map[string]*node{}, filterByKey: map[string]*filter{},
		classes: map[string]*class{}, domains: map[string]*topology{}, unschedulable: newUnschedulable(), demand: newDemand(),
	}
	f.cpu = f.columns.of(resource.CPU)
	return f
}

// Len returns the number of nodes.
func (f *Fleet) Len() int { return f.size }

// SetNode adds a node or replaces what is observed of it. Allocations on it stay. It
// reports whether a pod may fit there that did not before.
func (f *Fleet) SetNode(observed capacity.Node) (grew bool) {
	n, was := f.open(observed.Name)
	if !n.present || !sameMeta(&n.Node, &observed) {
		f.meta++
		n.meta = f.meta
	}
	allocatable := f.columns.vector(observed.Allocatable)
	n.Node, n.present = observed, true
	n.offered = allocatable.plus(f.columns.vector(observed.Unmanaged), -1)
	n.devices = f.columns.devices(allocatable) > 0
	return f.settle(n, was)
}

// RemoveNode removes a node. Allocations on it stay, in case it comes back.
func (f *Fleet) RemoveNode(name string) {
	if f.nodes[name] == nil {
		return
	}
	n, was := f.open(name)
	n.Node, n.present, n.offered, n.devices = capacity.Node{Name: name}, false, nil, false
	f.settle(n, was)
}

// SetExtra sets what pods of gangs use of a node beyond their placements. It reports
// whether a pod may fit there that did not before.
func (f *Fleet) SetExtra(name string, amounts resource.List) (grew bool) {
	if f.nodes[name] == nil && len(amounts) == 0 {
		return false
	}
	n, was := f.open(name)
	n.extra = f.columns.vector(amounts)
	return f.settle(n, was)
}

// Free returns what is free on a node, negative where it is over-committed, and whether
// there is such a node.
func (f *Fleet) Free(name string) (resource.List, bool) {
	n := f.nodes[name]
	if n == nil || !n.present {
		return nil, false
	}
	return f.columns.list(n.free), true
}

// open returns a node to be changed, with a copy of what it was; an unknown node is made.
func (f *Fleet) open(name string) (n *node, was node) {
	n = f.nodes[name]
	known := n != nil
	if !known {
		n = &node{Node: capacity.Node{Name: name}}
		f.enter(n)
	}
	was = *n
	f.note(n, was, known)
	f.unschedulable.recordBefore(n)
	return n, was
}

// enter gives a node a slot.
func (f *Fleet) enter(n *node) {
	f.nodes[n.Name] = n
	if last := len(f.vacant) - 1; last >= 0 {
		n.slot, f.vacant = f.vacant[last], f.vacant[:last]
		f.slots[n.slot] = n
		return
	}
	n.slot = len(f.slots)
	f.slots = append(f.slots, n)
}

// settle puts a changed node back, or drops it when nothing is left to keep. It reports
// whether a pod may fit there that did not before.
func (f *Fleet) settle(n *node, was node) (grew bool) {
	n.free = unused(n.offered, n.taken, n.extra)
	f.listPorts(n)
	f.offer(n, was)
	if !n.present {
		if n.taken.zero() && n.extra.zero() && len(n.ports) == 0 && len(f.savepoints) == 0 {
			f.forget(n)
		}
		return false
	}
	return !was.present || n.meta != was.meta || n.free.exceeds(was.free) || n.inUseKey != was.inUseKey
}

// offer has the next search see what a node is now.
func (f *Fleet) offer(n *node, was node) {
	if n.present != was.present || n.meta != was.meta {
		f.changes++
	}
	if n.meta != was.meta || n.inUseKey != was.inUseKey {
		f.unschedulable.relabelled(n)
	}
	if !n.filing.changed {
		n.filing.changed = true
		f.changed = append(f.changed, n)
	}
	if n.present != was.present {
		if n.present {
			f.size++
		} else {
			f.size--
		}
	}
	if n.present && (!was.present || n.meta != was.meta) {
		for _, fl := range f.filters {
			fl.evaluate(n)
		}
	}
}

func (f *Fleet) forget(n *node) {
	f.unfile(n)
	delete(f.nodes, n.Name)
	f.slots[n.slot] = nil
	f.vacant = append(f.vacant, n.slot)
}

// inOrder returns the nodes that are present, by name.
func (f *Fleet) inOrder() []*node {
	if f.byName == nil || f.listed != f.changes {
		f.byName = make([]*node, 0, f.size)
		for _, n := range f.slots {
			if n != nil && n.present {
				f.byName = append(f.byName, n)
			}
		}
		slices.SortFunc(f.byName, func(a, b *node) int { return cmp.Compare(a.Name, b.Name) })
		f.listed = f.changes
	}
	return f.byName
}

// note logs what a change replaces, within a what-if.
func (f *Fleet) note(n *node, was node, known bool) {
	if len(f.savepoints) > 0 {
		f.undoLog = append(f.undoLog, change{n, was, known})
	}
}
