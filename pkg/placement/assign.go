package placement

import (
	"cmp"
	"slices"
	"strings"

	"muster.dev/muster/pkg/resource"
	"muster.dev/muster/pkg/workload"
)

// assignment is a gang's pods on nodes, in the making.
type assignment struct {
	free   map[*node]resource.List // of nodes touched by this gang
	chosen []choice
	budget int // steps left of the exhaustive search
}

// choice is a number of pods of a set on a node.
type choice struct {
	set  *workload.PodSet
	node *node
	pods int
}

func (a *assignment) freeOn(n *node) resource.List {
	if free, touched := a.free[n]; touched {
		return free
	}
	return n.free
}

// greedy puts as many pods as fit onto the node that this leaves fullest, then
// onto the next. It returns the part that did not fit, or nil.
func (a *assignment) greedy(parts []part) *part {
	for i := range parts {
		p := &parts[i]
		left := p.set.Count
		for _, n := range a.byRoom(p) {
			pods := int(p.set.Template.Requests.TimesIn(a.freeOn(n), int64(left)))
			a.put(p.set, n, pods)
			if left -= pods; left == 0 {
				break
			}
		}
		if left > 0 {
			return p
		}
	}
	return nil
}

// byRoom returns the nodes that take at least one pod of the part, those with
// the least room first.
func (a *assignment) byRoom(p *part) []*node {
	type roomy struct {
		node *node
		room room
	}
	fitting := make([]roomy, 0, len(p.candidates))
	for _, n := range p.candidates {
		free, has := n.free, n.room
		if a.touched(n) {
			free = a.freeOn(n)
			has = roomOf(free)
		}
		if p.set.Template.Requests.FitsIn(free) {
			fitting = append(fitting, roomy{n, has})
		}
	}
	slices.SortStableFunc(fitting, func(x, y roomy) int { return x.room.compare(y.room) })
	nodes := make([]*node, len(fitting))
	for i, f := range fitting {
		nodes[i] = f.node
	}
	return nodes
}

// touched reports whether this decision has taken anything of the node.
func (a *assignment) touched(n *node) bool {
	_, touched := a.free[n]
	return touched
}

// room is what is free on a node, in the order of what is dear: extended
// resources before CPU and memory, so that pods without GPUs keep off the nodes
// that have them and small requests do not break up large free blocks.
type room struct {
	extended, cpu, memory int64
}

func roomOf(free resource.List) room {
	r := room{cpu: free[resource.CPU], memory: free[resource.Memory]}
	for name, amount := range free {
		if extended(name) {
			r.extended += amount
		}
	}
	return r
}

func (r room) compare(other room) int {
	return cmp.Or(cmp.Compare(r.extended, other.extended), cmp.Compare(r.cpu, other.cpu), cmp.Compare(r.memory, other.memory))
}

func (a *assignment) put(set *workload.PodSet, n *node, pods int) {
	a.free[n] = a.freeOn(n).Minus(set.Template.Requests.Times(int64(pods)))
	a.chosen = append(a.chosen, choice{set, n, pods})
}

// exhaustive places the pods one by one, the placed-th of parts[0] next, trying
// on each step one node of each kind that differs in what is free on it or in
// who may use it. It reports whether all have places; when it does not and
// budget is left, there are none.
func (a *assignment) exhaustive(parts []part, at, placed int) bool {
	if at == len(parts) {
		return true
	}
	p := parts[at]
	if placed == p.set.Count {
		return a.exhaustive(parts, at+1, 0)
	}
	tried := map[string]bool{}
	for _, n := range p.candidates {
		free := a.freeOn(n)
		if !p.set.Template.Requests.FitsIn(free) {
			continue
		}
		kind := kindOf(n, free, parts)
		if tried[kind] {
			continue
		}
		tried[kind] = true
		if a.budget--; a.budget <= 0 {
			return false
		}
		before, touched := a.free[n]
		a.put(p.set, n, 1)
		if a.exhaustive(parts, at, placed+1) {
			return true
		}
		a.chosen = a.chosen[:len(a.chosen)-1]
		if touched {
			a.free[n] = before
		} else {
			delete(a.free, n)
		}
	}
	return false
}

// kindOf is the same for nodes that are interchangeable in a search.
func kindOf(n *node, free resource.List, parts []part) string {
	var kind strings.Builder
	kind.WriteString(free.String())
	for _, p := range parts {
		if n.Refuses(&p.set.Template) == "" {
			kind.WriteByte('+')
		} else {
			kind.WriteByte('-')
		}
	}
	return kind.String()
}

// placements returns the choices, one for each pod set and node, in the order of
// the workload's pod sets and of node names.
func (a *assignment) placements(w *workload.Workload) []workload.Placement {
	type place struct{ set, node string }
	pods := map[place]int{}
	hostnames := map[string]string{}
	for _, c := range a.chosen {
		pods[place{c.set.Name, c.node.Name}] += c.pods
		if hostname := c.node.Labels[hostnameLabel]; hostname != c.node.Name {
			hostnames[c.node.Name] = hostname
		}
	}
	placements := make([]workload.Placement, 0, len(pods))
	for at, n := range pods {
		placements = append(placements, workload.Placement{PodSet: at.set, Node: at.node, Pods: n, Hostname: hostnames[at.node]})
	}
	index := func(name string) int {
		return slices.IndexFunc(w.PodSets, func(set workload.PodSet) bool { return set.Name == name })
	}
	slices.SortFunc(placements, func(x, y workload.Placement) int {
		return cmp.Or(cmp.Compare(index(x.PodSet), index(y.PodSet)), cmp.Compare(x.Node, y.Node))
	})
	return placements
}
