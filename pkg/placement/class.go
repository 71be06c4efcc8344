package placement

import (
	"cmp"
	"slices"
	"strings"
)

// class is nodes that give every filter the same answer.
type class struct {
	key    string // the answers
	groups []*group
}

// group is nodes of a class on which the same is free: interchangeable for
// every gang, but for their names and domains.
type group struct {
	class   *class
	free    vector
	devices int64   // sum of extended resources that are free
	ports   string  // host ports in use, canonical
	nodes   []*node // by name, last first: the first name is the cheapest to take out
}

// classOf returns the class of a node that is in the choice.
func (f *Fleet) classOf(n *node) *class {
	key := f.scratch[:0]
	for _, fl := range f.filters {
		answer := byte('-')
		if fl.eligible(n) {
			answer = '+'
		}
		key = append(key, answer)
	}
	if n.devices {
		key = append(key, 'd')
	}
	f.scratch = key
	c := f.classes[string(key)]
	if c == nil {
		c = &class{key: string(key)}
		f.classes[c.key] = c
		i, _ := slices.BinarySearchFunc(f.classList, c.key, func(c *class, key string) int { return strings.Compare(c.key, key) })
		f.classList = slices.Insert(f.classList, i, c)
	}
	return c
}

// reclass sorts all nodes anew into classes.
func (f *Fleet) reclass() {
	f.classes, f.classList = map[string]*class{}, nil
	for _, n := range f.slots {
		if n != nil && n.present {
			n.group = nil
			f.file(n)
		}
	}
}

// compareGroups orders the groups of a class, the fullest first.
func (c *columns) compareGroups(a, b *group) int {
	if order := cmp.Compare(a.devices, b.devices); order != 0 {
		return order
	}
	for _, column := range c.order {
		if order := cmp.Compare(a.free.at(column), b.free.at(column)); order != 0 {
			return order
		}
	}
	return cmp.Compare(a.ports, b.ports)
}

// file puts a node into its group.
func (f *Fleet) file(n *node) {
	probe := group{free: n.free, devices: f.columns.devices(n.free), ports: n.inUseKey}
	c := f.classOf(n)
	i, found := slices.BinarySearchFunc(c.groups, &probe, f.columns.compareGroups)
	if !found {
		fresh := probe
		fresh.class = c
		c.groups = slices.Insert(c.groups, i, &fresh)
	}
	g := c.groups[i]
	n.group = g
	at, _ := slices.BinarySearchFunc(g.nodes, n.Name, lastFirst)
	g.nodes = slices.Insert(g.nodes, at, n)
}

// unfile takes a node out of its group.
func (f *Fleet) unfile(n *node) {
	g := n.group
	at, _ := slices.BinarySearchFunc(g.nodes, n.Name, lastFirst)
	g.nodes = slices.Delete(g.nodes, at, at+1)
	n.group = nil
	if len(g.nodes) > 0 {
		return
	}
	c := g.class
	i, _ := slices.BinarySearchFunc(c.groups, g, f.columns.compareGroups)
	c.groups = slices.Delete(c.groups, i, i+1)
	if len(c.groups) == 0 {
		delete(f.classes, c.key)
		f.classList = slices.DeleteFunc(f.classList, func(other *class) bool { return other == c })
	}
}

func lastFirst(n *node, name string) int { return cmp.Compare(name, n.Name) }
