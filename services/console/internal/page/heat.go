package page

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
)

// mostCells bounds the cells of the heat map: with more nodes than this a cell is a rack, or a
// number of nodes.
const mostCells = 1000

// Accelerator is what becomes of the devices of one kind on all nodes. The parts are disjoint,
// and their sum is Total.
type Accelerator struct {
	Resource resource.Name
	Total    int64
	// Reserved is held by workloads of Muster, Others by pods that are not of Muster.
	Reserved, Others int64
	// Free can have pods now; Closed is free on nodes that are cordoned or drained.
	Free, Closed int64
	// Broken is all of nodes that are not ready.
	Broken int64
}

// device reports whether a resource is counted as an accelerator: whole units that are not pods.
func device(name resource.Name) bool { return resource.Whole(name) && name != resource.Pods }

// Accelerators sums the devices of nodes, by the names of resources.
func Accelerators(nodes []query.Node) []Accelerator {
	sums := map[resource.Name]*Accelerator{}
	for i := range nodes {
		n := &nodes[i]
		for name, total := range n.Allocatable {
			if !device(name) || total == 0 {
				continue
			}
			sum := sums[name]
			if sum == nil {
				sum = &Accelerator{Resource: name}
				sums[name] = sum
			}
			sum.add(n, name)
		}
	}
	all := make([]Accelerator, 0, len(sums))
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		all = append(all, *sums[name])
	}
	return all
}

func (a *Accelerator) add(n *query.Node, name resource.Name) {
	total := n.Allocatable[name]
	a.Total += total
	if !n.Ready {
		a.Broken += total
		return
	}
	reserved := min(total, max(0, n.Reserved[name]))
	free := min(total-reserved, max(0, n.Free[name]))
	a.Reserved += reserved
	a.Others += total - reserved - free
	if n.Cordoned || n.Drained() {
		a.Closed += free
	} else {
		a.Free += free
	}
}

// Cluster is the heat map of one cluster.
type Cluster struct {
	Name  string
	Racks []Rack
}

// Rack is the cells of one rack; its name is empty where nodes have none.
type Rack struct {
	Name  string
	Cells []Cell
}

// Cell is one node, or several that lie next to each other.
type Cell struct {
	// Name is that of the node, or of the first and last of several.
	Name string
	// Link is the page that shows them.
	Link string
	// Used and Total count accelerators; Nodes counts nodes, Broken those that are not ready and
	// Closed those that take no pods.
	Used, Total           int64
	Nodes, Broken, Closed int
}

// Level is the use in eighths, for the colour: 0 for none, 8 for all.
func (c Cell) Level() int {
	if c.Total == 0 {
		return 0
	}
	if c.Used >= c.Total {
		return 8
	}
	return max(int(c.Used*8/c.Total), min(1, int(c.Used)))
}

// Text is what the cell shows: a mark for what is wrong, and the figures.
func (c Cell) Text() string {
	mark := ""
	switch {
	case c.Broken > 0:
		mark = "✕ "
	case c.Closed > 0:
		mark = "– "
	}
	return fmt.Sprintf("%s%d/%d", mark, c.Used, c.Total)
}

// Label is the cell in words.
func (c Cell) Label() string {
	text := fmt.Sprintf("%s: %d of %d accelerators used", c.Name, c.Used, c.Total)
	if c.Nodes > 1 {
		text += fmt.Sprintf(", %d nodes", c.Nodes)
	}
	if c.Broken > 0 {
		text += fmt.Sprintf(", %d not ready", c.Broken)
	}
	if c.Closed > 0 {
		text += fmt.Sprintf(", %d cordoned or drained", c.Closed)
	}
	return text
}

// Heat is the heat map of the nodes with accelerators, which are in the order of clusters and
// names. A cell is a node as long as there are no more than mostCells.
func Heat(nodes []query.Node, rackLabel string) []Cluster {
	type place struct {
		cluster, rack string
		node          *query.Node
	}
	var places []place
	for i := range nodes {
		n := &nodes[i]
		for name, amount := range n.Allocatable {
			if device(name) && amount > 0 {
				places = append(places, place{n.Cluster, n.Labels[rackLabel], n})
				break
			}
		}
	}
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Or(cmp.Compare(a.cluster, b.cluster), cmp.Compare(a.rack, b.rack)) })
	size := 1
	if len(places) > mostCells {
		size = (len(places)*2 + mostCells - 1) / mostCells // half the bound, because racks end with smaller cells
	}
	var all []Cluster
	cells := 0
	for _, p := range places {
		if len(all) == 0 || all[len(all)-1].Name != p.cluster {
			all = append(all, Cluster{Name: p.cluster})
		}
		c := &all[len(all)-1]
		if len(c.Racks) == 0 || c.Racks[len(c.Racks)-1].Name != p.rack && cells < mostCells {
			c.Racks = append(c.Racks, Rack{Name: p.rack})
		}
		r := &c.Racks[len(c.Racks)-1]
		last := len(r.Cells) - 1
		if last < 0 || r.Cells[last].Nodes >= size && cells < mostCells {
			r.Cells, last = append(r.Cells, Cell{}), last+1
			cells++
		}
		r.Cells[last].add(p.node)
	}
	return all
}

func (c *Cell) add(n *query.Node) {
	if c.Nodes++; c.Nodes == 1 {
		c.Name, c.Link = n.Name, NodeLink(n.Cluster, n.Name)
	} else {
		first, _, _ := cutRange(c.Name)
		c.Name, c.Link = first+rangeMark+n.Name, nodesFrom(n.Cluster, first)
	}
	switch {
	case !n.Ready:
		c.Broken++
	case n.Cordoned || n.Drained():
		c.Closed++
	}
	for name, total := range n.Allocatable {
		if device(name) {
			c.Total += total
			if n.Ready {
				c.Used += min(total, max(0, total-n.Free[name]))
			}
		}
	}
}
