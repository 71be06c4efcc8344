package placement

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"muster.dev/muster/pkg/resource"
	"muster.dev/muster/pkg/workload"
)

// shortage returns what the part lacks when it alone is placed, nil when it has
// nodes enough. On its own each pod set has a closed answer: the sum over the
// nodes of how many of its pods fit there.
func (f *Fleet) shortage(p part) *workload.Shortage {
	fit := 0
	for _, n := range p.candidates {
		fit += int(p.set.Template.Requests.TimesIn(n.free, int64(p.set.Count)))
		if fit >= p.set.Count {
			return nil
		}
	}
	return f.describe(p, p.set.Count-fit, observed)
}

// shortageInSum returns the first resource of which all nodes together have less
// than the gang asks, nil when there is none.
func (f *Fleet) shortageInSum(parts []part) *workload.Shortage {
	asked, free := resource.List{}, resource.List{}
	for _, p := range parts {
		asked = asked.Plus(p.set.Template.Requests.Times(int64(p.set.Count)))
	}
	for _, n := range f.sorted {
		if slices.ContainsFunc(parts, func(p part) bool { return slices.Contains(p.candidates, n) }) {
			free = free.Plus(atLeastZero(n.free))
		}
	}
	if asked.FitsIn(free) {
		return nil
	}
	return f.shortageTogether(parts)
}

// shortageTogether describes what the first part lacks for which the others
// leave no room.
func (f *Fleet) shortageTogether(parts []part) *workload.Shortage {
	a := &assignment{free: map[*node]resource.List{}}
	stuck := a.greedy(parts)
	if stuck == nil { // cannot be: the caller has seen greedy fail on the same parts
		return f.describe(parts[0], parts[0].set.Count, observed)
	}
	placed := 0
	for _, c := range a.chosen {
		if c.set == stuck.set {
			placed += c.pods
		}
	}
	return f.describe(*stuck, stuck.set.Count-placed, a.freeOn)
}

// describe states the shortage of a part: the resource that most of its eligible
// nodes lack, and who is not eligible.
func (f *Fleet) describe(p part, unplaced int, freeOn func(*node) resource.List) *workload.Shortage {
	short := &workload.Shortage{
		PodSet: p.set.Name, Pods: p.set.Count, Unplaced: unplaced,
		Eligible: len(p.candidates), Nodes: len(f.sorted), Excluded: map[string]int{},
	}
	for _, n := range f.sorted {
		if refusal := n.Refuses(&p.set.Template); refusal != "" {
			short.Excluded[string(refusal)]++
		}
	}
	mostLacking := -1
	for _, name := range p.set.Template.Requests.Names() {
		asked := p.set.Template.Requests[name]
		lacking, largest, sum := 0, int64(0), int64(0)
		for _, n := range p.candidates {
			free := max(0, freeOn(n)[name])
			largest, sum = max(largest, free), sum+free
			if free < asked {
				lacking++
			}
		}
		if lacking > mostLacking || lacking == mostLacking && extended(name) && !extended(short.Resource) {
			mostLacking = lacking
			short.Resource, short.Asked, short.Largest, short.Sum = name, asked, largest, sum
		}
	}
	if len(p.candidates) == 0 {
		short.Resource, short.Asked = "", 0
	}
	return short
}

// observed is what is free on a node for whoever comes first.
func observed(n *node) resource.List { return n.free }

func sentence(s *workload.Shortage) string {
	subject := fmt.Sprintf("%d of %d pods of pod set %q have no node", s.Unplaced, s.Pods, s.PodSet)
	if s.Eligible == 0 {
		return fmt.Sprintf("%s: none of the %d nodes may take them (%s)", subject, s.Nodes, excluded(s.Excluded))
	}
	text := fmt.Sprintf("%s: each asks %s %s; free on the best node %s, in sum over %d eligible nodes %s",
		subject, s.Resource, resource.Format(s.Resource, s.Asked),
		resource.Format(s.Resource, s.Largest), s.Eligible, resource.Format(s.Resource, s.Sum))
	if s.Sum >= s.Asked && s.Largest < s.Asked {
		text += ", but not on one node"
	}
	if len(s.Excluded) > 0 {
		text += fmt.Sprintf("; other nodes excluded: %s", excluded(s.Excluded))
	}
	return text
}

func excluded(counts map[string]int) string {
	var parts []string
	for _, cause := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[cause], cause))
	}
	return strings.Join(parts, ", ")
}

func atLeastZero(l resource.List) resource.List {
	positive := make(resource.List, len(l))
	for name, amount := range l {
		positive[name] = max(0, amount)
	}
	return positive
}
