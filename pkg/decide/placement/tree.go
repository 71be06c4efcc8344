package placement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// domain is one domain, or node, of a form.
type domain struct {
	form  *form
	node  *node
	parts [][]*domain // by the form's parts
}

// grow makes the tree of domains of the nodes, which are in order of names.
func (s *search) grow(nodes []*node, level, depth int, bare bool, counted []bool) *domain {
	var children []*domain
	s.spend(len(nodes))
	if depth == len(s.levels) {
		for _, n := range nodes {
			if s.spent() {
				break
			}
			children = append(children, &domain{form: s.formOf(n, bare), node: n})
		}
	} else {
		children = s.divide(nodes, depth)
	}
	d := &domain{}
	at := map[*form]int{}
	fm := form{level: level, bare: bare, counted: counted}
	for _, child := range children {
		i, known := at[child.form]
		if !known {
			i = len(fm.parts)
			at[child.form] = i
			fm.parts, d.parts = append(fm.parts, part{form: child.form}), append(d.parts, nil)
		}
		fm.parts[i].n++
		d.parts[i] = append(d.parts[i], child)
	}
	d.form = s.intern(&fm)
	if d.form != &fm {
		sortParts(&fm, d)
	}
	return d
}

// divide sorts nodes into the domains of a level.
func (s *search) divide(nodes []*node, depth int) []*domain {
	t := s.topologies[depth]
	byDomain := map[int32][]*node{}
	var order []int32
	for _, n := range nodes {
		number := t.of[n.slot]
		if _, known := byDomain[number]; !known {
			order = append(order, number)
		}
		byDomain[number] = append(byDomain[number], n)
	}
	children := make([]*domain, 0, len(order))
	for _, number := range order {
		if s.spend(1 + len(s.rules)/16); s.spent() {
			break
		}
		counted := make([]bool, len(s.rules))
		for i := range s.rules {
			counted[i] = number != none && s.rules[i].key == s.levels[depth] && s.counted[i][number]
		}
		children = append(children, s.grow(byDomain[number], depth, depth+1, number == none, counted))
	}
	return children
}

// formOf returns the form of a node: what it takes, less what lacking a label
// forbids.
func (s *search) formOf(n *node, bare bool) *form {
	missing := 0
	for i, t := range s.topologies {
		if t.of[n.slot] == none {
			missing |= 1 << i
		}
	}
	key := leafKey{n.group, missing}
	if known := s.leaves[key]; known != nil {
		return known
	}
	largest := s.alone(n.group)
	for k := range s.kinds {
		if s.needs[k]&missing != 0 {
			for i := range largest {
				largest[i] = slices.Clone(largest[i])
				largest[i][k] = 0
			}
		}
	}
	f := &paretoFrontier{largest: largest, from: make([][2]int, len(largest))}
	s.prune(f)
	known := s.intern(&form{level: leaf, largest: f.largest})
	s.leaves[key] = known
	return known
}

// intern returns the form that equals fm, fm itself when it is the first.
func (s *search) intern(fm *form) *form {
	if s.spend(1 + len(fm.parts)/2 + len(fm.largest)*s.perCounts()); s.spent() { // they are written out
		return fm
	}
	var key strings.Builder
	fmt.Fprint(&key, fm.level, fm.bare, fm.counted, fm.largest)
	parts := slices.Clone(fm.parts)
	slices.SortFunc(parts, func(a, b part) int { return cmp.Compare(s.numbers[a.form], s.numbers[b.form]) })
	for _, p := range parts {
		fmt.Fprint(&key, " ", s.numbers[p.form], "x", p.n)
	}
	if known := s.forms[key.String()]; known != nil {
		return known
	}
	s.forms[key.String()] = fm
	s.numbers[fm] = len(s.numbers)
	return fm
}

// sortParts puts a domain's parts into the order of its form's, which is another
// domain's.
func sortParts(own *form, d *domain) {
	byForm := map[*form][]*domain{}
	for i, p := range own.parts {
		byForm[p.form] = d.parts[i]
	}
	d.parts = d.parts[:0]
	for _, p := range d.form.parts {
		d.parts = append(d.parts, byForm[p.form])
	}
}

// nested reports whether each domain of a level lies in one domain of the level
// above, among the nodes that matter.
func (s *search) nested(nodes []*node) bool {
	for depth := 1; depth < len(s.levels); depth++ {
		above := map[int32]int32{}
		for _, n := range nodes {
			inner, outer := s.topologies[depth].of[n.slot], s.topologies[depth-1].of[n.slot]
			if inner == none {
				continue
			}
			if other, known := above[inner]; known && other != outer {
				return false
			}
			above[inner] = outer
		}
	}
	return true
}

// arrange puts the levels into order, the widest domains first.
func (s *search) arrange(nodes []*node) {
	width := map[string]int{}
	keys := map[string]bool{}
	for _, r := range s.rules {
		if r.key != perNode && r.kind != prefer {
			keys[r.key] = true
		}
	}
	for key := range keys {
		t := s.fleet.topologyOf(key)
		used := map[int32]bool{}
		for _, n := range nodes {
			if number := t.of[n.slot]; number != none {
				used[number] = true
			}
		}
		width[key] = len(used)
	}
	s.levels = slices.SortedFunc(maps.Keys(keys), func(a, b string) int {
		return cmp.Or(cmp.Compare(width[a], width[b]), cmp.Compare(a, b))
	})
	for _, key := range s.levels {
		s.topologies = append(s.topologies, s.fleet.topologyOf(key))
	}
}
