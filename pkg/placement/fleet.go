// Package placement finds a node for each pod of a gang, or proves that there
// is none.
//
// A Fleet holds the nodes of one cluster with what is free on them. It is pure:
// no context, clock, logger, randomness or I/O; the same fleet gives the same
// verdict on any machine, in whatever order it was built. It does not know
// queues, quota or priorities (package admission), and does not carry a plan
// out.
package placement

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"muster.dev/muster/pkg/capacity"
	"muster.dev/muster/pkg/resource"
	"muster.dev/muster/pkg/workload"
)

// node is a node with what is taken on it.
type node struct {
	capacity.Node
	present bool
	taken   resource.List // by gangs that have places here
	extra   resource.List // by pods of gangs outside any reservation
	free    resource.List // allocatable - unmanaged - taken - extra
	room    room          // of free
	// class is the same for nodes that refuse the same templates.
	class string
}

// Fleet is the nodes of one cluster. It is not safe for concurrent use.
type Fleet struct {
	nodes   map[string]*node
	sorted  []*node  // those present, by name
	journal []change // since the first mark
	marks   []int    // lengths of the journal
	parked  map[string]bool
	grown   bool // since the last Wake
}

// NewFleet returns a fleet without nodes.
func NewFleet() *Fleet {
	return &Fleet{nodes: map[string]*node{}, parked: map[string]bool{}}
}

// Len returns the number of nodes.
func (f *Fleet) Len() int { return len(f.sorted) }

// SetNode adds a node or replaces what is observed of it. What gangs take of it
// stays. It reports whether a pod might fit there that did not before.
func (f *Fleet) SetNode(n capacity.Node) (grew bool) {
	return f.update(n.Name, func(updated *node) {
		updated.Node, updated.present, updated.class = n, true, classOf(n)
	})
}

// RemoveNode takes a node out of the choice. What gangs take of it stays, in
// case it comes back.
func (f *Fleet) RemoveNode(name string) {
	f.update(name, func(updated *node) {
		updated.Node, updated.present = capacity.Node{Name: name}, false
	})
}

// Take charges the places of a gang, whatever is free there.
func (f *Fleet) Take(w *workload.Workload, placements []workload.Placement) {
	f.charge(w, placements, 1)
}

// Give gives back what Take charged.
func (f *Fleet) Give(w *workload.Workload, placements []workload.Placement) {
	f.charge(w, placements, -1)
}

func (f *Fleet) charge(w *workload.Workload, placements []workload.Placement, sign int64) {
	for _, p := range placements {
		i := slices.IndexFunc(w.PodSets, func(set workload.PodSet) bool { return set.Name == p.PodSet })
		if i < 0 {
			continue
		}
		f.update(p.Node, func(updated *node) {
			updated.taken = updated.taken.Plus(w.PodSets[i].Template.Requests.Times(sign * int64(p.Pods)))
		})
	}
}

// SetExtra says what pods of gangs take on the node outside any reservation. It
// replaces what was said before, and reports whether a pod might fit there that
// did not.
func (f *Fleet) SetExtra(name string, amounts resource.List) (grew bool) {
	return f.update(name, func(updated *node) { updated.extra = amounts })
}

// Free returns what is free on a node, less than nothing where it is
// over-committed, and whether there is such a node.
func (f *Fleet) Free(name string) (resource.List, bool) {
	n := f.nodes[name]
	if n == nil || !n.present {
		return nil, false
	}
	return n.free.Clone(), true
}

// update replaces a node by a changed copy, and notes the old one for Rollback.
func (f *Fleet) update(name string, change func(*node)) (grew bool) {
	old := f.nodes[name]
	updated := &node{Node: capacity.Node{Name: name}}
	if old != nil {
		*updated = *old
	}
	change(updated)
	updated.free = updated.Allocatable.Minus(updated.Unmanaged).Minus(updated.taken).Minus(updated.extra)
	updated.room = roomOf(updated.free)
	f.note(name, old)
	return f.put(name, updated)
}

func (f *Fleet) put(name string, updated *node) (grew bool) {
	old := f.nodes[name]
	if updated == nil || !updated.present && updated.taken.Equal(nil) && updated.extra.Equal(nil) {
		delete(f.nodes, name)
	} else {
		f.nodes[name] = updated
	}
	i, found := slices.BinarySearchFunc(f.sorted, name, func(n *node, name string) int { return cmp.Compare(n.Name, name) })
	switch present := updated != nil && updated.present; {
	case found && present:
		f.sorted[i] = updated
	case found:
		f.sorted = slices.Delete(f.sorted, i, i+1)
		return false
	case present:
		f.sorted = slices.Insert(f.sorted, i, updated)
	default:
		return false
	}
	grew = old == nil || !old.present || old.class != updated.class || !updated.free.FitsIn(old.free)
	f.grown = f.grown || grew && len(f.marks) == 0
	return grew
}

// classOf is the same for nodes that refuse the same templates. Nodes differ in
// their name and hostname, which only few templates ask for.
func classOf(n capacity.Node) string {
	labels := maps.Clone(n.Labels)
	if labels[hostnameLabel] == n.Name {
		delete(labels, hostnameLabel)
	}
	encoded, err := json.Marshal([]any{labels, n.Taints, n.Ready, n.Cordoned})
	if err != nil {
		panic(fmt.Sprintf("labels of node %s/%s cannot be encoded: %v", n.Cluster, n.Name, err)) // plain data always can
	}
	return string(encoded)
}

// hostnameLabel tells single nodes apart, so it is left out of their class.
const hostnameLabel = "kubernetes.io/hostname"
