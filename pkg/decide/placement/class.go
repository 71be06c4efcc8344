package placement

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
)

// classOf returns the class of a node that is present.
func (f *Fleet) classOf(n *node) *class {
	key := f.scratch[:0]
	for _, fl := range f.filters {
		key = append(key, letter(fl.eligible(n)))
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

// split updates the classes for a new filter at a place. Nodes that give another answer
// than most of their class move; so do nodes of a class whose key has become that of a
// larger one, because the filter that separated the two was evicted. Most filters that
// submitters make up match no node, all, or a few, and move few nodes.
func (f *Fleet) split(at int, fl *filter, appended bool) {
	kept := make(map[string]*class, len(f.classes))
	most := make(map[*class]bool, len(f.classes))
	keys := make(map[*class]string, len(f.classes))
	for _, c := range f.classList {
		most[c] = c.mostly(fl)
		key := []byte(c.key)
		if appended {
			key = slices.Insert(key, at, 0)
		}
		key[at] = letter(most[c])
		keys[c] = string(key)
		if other := kept[keys[c]]; other == nil || other.size() < c.size() {
			kept[keys[c]] = c
		}
	}
	var moving []*node
	for _, c := range f.classList {
		for _, g := range c.groups {
			for _, n := range g.nodes {
				if kept[keys[c]] != c || fl.eligible(n) != most[c] {
					moving = append(moving, n)
				}
			}
		}
	}
	for _, n := range moving {
		f.unfile(n)
	}
	for key, c := range kept {
		c.key = key
	}
	f.classes = kept
	f.classList = slices.SortedFunc(maps.Values(kept), func(a, b *class) int { return strings.Compare(a.key, b.key) })
	for _, n := range moving {
		f.file(n)
	}
}

// mostly returns the answer that most nodes of the class get from a filter.
func (c *class) mostly(fl *filter) bool {
	in := 0
	for _, g := range c.groups {
		for _, n := range g.nodes {
			if fl.eligible(n) {
				in++
			}
		}
	}
	return 2*in > c.size()
}

// size returns the number of nodes.
func (c *class) size() int {
	nodes := 0
	for _, g := range c.groups {
		nodes += len(g.nodes)
	}
	return nodes
}

func letter(eligible bool) byte {
	if eligible {
		return '+'
	}
	return '-'
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

// refile files the nodes that changed since the last search.
func (f *Fleet) refile() {
	for _, n := range f.changed {
		n.filing.changed = false
		if f.staysFiled(n) {
			continue
		}
		f.unfile(n)
		if n.present {
			f.file(n)
		}
	}
	clear(f.changed)
	f.changed = f.changed[:0]
}

// staysFiled reports whether a node belongs where it is filed.
func (f *Fleet) staysFiled(n *node) bool {
	g := n.group
	return g != nil && n.present && n.meta == n.filing.meta && n.devices == n.filing.devices &&
		n.inUseKey == g.ports && !n.free.exceeds(g.free) && !g.free.exceeds(n.free)
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
	n.group, n.filing.meta, n.filing.devices = g, n.meta, n.devices
	at, _ := slices.BinarySearchFunc(g.nodes, n.Name, lastFirst)
	g.nodes = slices.Insert(g.nodes, at, n)
	f.idle += g.devices
}

// unfile removes a node from its group, if it has one.
func (f *Fleet) unfile(n *node) {
	g := n.group
	if g == nil {
		return
	}
	at, _ := slices.BinarySearchFunc(g.nodes, n.Name, lastFirst)
	g.nodes = slices.Delete(g.nodes, at, at+1)
	f.idle -= g.devices
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

// filterOf returns the filter of a template. A new filter evaluates every node once and
// splits the classes whose nodes it separates.
func (f *Fleet) filterOf(t *workload.Template) *filter {
	f.uses++
	f.scratch = appendFilterKey(f.scratch[:0], t)
	if known := f.filterByKey[string(f.scratch)]; known != nil {
		known.used = f.uses
		return known
	}
	fl := &filter{
		key: string(f.scratch), used: f.uses, refusals: make([]capacity.Refusal, len(f.slots)),
		template: workload.Template{NodeSelector: maps.Clone(t.NodeSelector), Affinity: t.Affinity, Tolerations: t.Tolerations},
	}
	for _, n := range f.slots {
		if n != nil && n.present {
			fl.evaluate(n)
		}
	}
	at := f.vacate()
	f.filterByKey[fl.key] = fl
	appended := at == len(f.filters)
	if appended {
		f.filters = append(f.filters, fl)
	} else {
		f.filters[at] = fl
	}
	f.split(at, fl, appended)
	return fl
}

// vacate returns the place for another filter: behind all others or, when there are
// enough, that of the least recently used one, which is evicted.
func (f *Fleet) vacate() int {
	if len(f.filters) < mostFilters {
		return len(f.filters)
	}
	oldest := slices.MinFunc(f.filters, func(a, b *filter) int { return cmp.Compare(a.used, b.used) })
	if oldest.used > f.since { // the gang at hand asks for it
		return len(f.filters)
	}
	delete(f.filterByKey, oldest.key)
	return slices.Index(f.filters, oldest)
}

// current reports whether a filter is still kept up to date.
func (f *Fleet) current(fl *filter) bool { return fl != nil && f.filterByKey[fl.key] == fl }
