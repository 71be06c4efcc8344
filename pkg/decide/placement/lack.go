package placement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/fault"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Lack is what no node of a fleet offers to a pod of a pod set, or all nodes together do not
// offer to all pods, even if the nodes were empty, ready and not cordoned.
type Lack struct {
	PodSet string // empty where several pod sets lack it together
	// Amounts are what no node offers: one resource, or several that no node has enough
	// of together. Empty when the pods' terms exclude all nodes.
	Amounts resource.List
	// Most of the one resource that a node offers; 0 when no node has any.
	Most int64
	// Similar is a resource of the fleet with nearly the same name as one that no node has.
	Similar resource.Name
	// Terms is which of the pods' terms exclude all nodes; or, with Amounts, is empty.
	Terms string
	// Pods of the set are more than Room, the room of all nodes for them. Zero where
	// another thing lacks.
	Pods, Room int
	// Sum is what all nodes that take any of the pods offer of Amounts, which the whole gang
	// requests. Set only without a pod set.
	Sum int64
}

// Sentence returns what is missing.
func (l *Lack) Sentence() string {
	names := l.Amounts.Names()
	switch {
	case l.PodSet == "":
		return fmt.Sprintf("the gang requests %s %s together, and all nodes that take its pods offer %s when empty",
			names[0], resource.Format(names[0], l.Amounts[names[0]]), resource.Format(names[0], l.Sum))
	case l.Pods > 0:
		return fmt.Sprintf("pod set %q has %d pods, and all nodes that take them have room for %d together when empty", l.PodSet, l.Pods, l.Room)
	case l.Terms != "":
		return fmt.Sprintf("pods of pod set %q fit on no node: %s", l.PodSet, l.Terms)
	case len(names) > 1:
		var texts []string
		for _, name := range names {
			texts = append(texts, fmt.Sprintf("%s %s", name, resource.Format(name, l.Amounts[name])))
		}
		return fmt.Sprintf("each pod of pod set %q requests %s, and no node that takes it offers all of them, even when empty", l.PodSet, strings.Join(texts, " and "))
	case l.Most > 0:
		return fmt.Sprintf("each pod of pod set %q requests %s %s, and the largest node that takes it offers %s when empty",
			l.PodSet, names[0], resource.Format(names[0], l.Amounts[names[0]]), resource.Format(names[0], l.Most))
	}
	text := fmt.Sprintf("no node that takes pods of pod set %q offers %s, of which each requests %s", l.PodSet, names[0], resource.Format(names[0], l.Amounts[names[0]]))
	if l.Similar != "" {
		text += fmt.Sprintf("; did you mean %s?", l.Similar)
	}
	return text
}

// Lacks returns what no node offers to the pods, or all nodes together do not; nil when
// neither is so, and then the nodes, by name, that show it. It counts amounts alone, so what
// lacks nothing may still have no places. A fleet without nodes lacks nothing, because nothing
// is known of it.
func (f *Fleet) Lacks(podSets []workload.PodSet) (lack *Lack, nodes []string) {
	if f.Len() == 0 {
		return nil, nil
	}
	c := newOfferCount(podSets)
	for _, n := range f.inOrder() { // fleets of another history give the same ones
		if c.enough() {
			break
		}
		if c.add(&n.Node) {
			nodes = append(nodes, n.Name)
		}
	}
	for i := range podSets {
		if podSets[i].Count > 0 && c.room[i] == 0 {
			return f.lackOf(&podSets[i]), nil
		}
	}
	if lack := c.lack(); lack != nil {
		return lack, nil
	}
	return nil, nodes
}

// lackOf returns why no node offers room to a pod of the set: what the whole fleet lacks,
// then which terms exclude all nodes, then what the remaining nodes lack.
func (f *Fleet) lackOf(set *workload.PodSet) *Lack {
	all, t := f.inOrder(), &set.Template
	if lack := lackingAmount(set, all); lack != nil {
		lack.Similar = similarResource(lack, all)
		return lack
	}
	selected := narrowed(all, func(n *node) bool { return n.Selects(t) })
	if len(selected) == 0 {
		return &Lack{PodSet: set.Name, Terms: excludingTerms(all, t)}
	}
	tolerated := narrowed(selected, func(n *node) bool { return len(untolerated(&n.Node, t)) == 0 })
	if len(tolerated) == 0 {
		first := untolerated(&selected[0].Node, t)[0]
		return &Lack{PodSet: set.Name, Terms: fmt.Sprintf("every node that they select has a taint that they do not tolerate, such as %s", taintText(first))}
	}
	if lack := lackingAmount(set, tolerated); lack != nil {
		return lack
	}
	together := resource.List{}
	for name, amount := range t.Requests {
		if slices.ContainsFunc(tolerated, func(n *node) bool { return n.Allocatable[name] < amount }) {
			together[name] = amount
		}
	}
	return &Lack{PodSet: set.Name, Amounts: together}
}

func narrowed(nodes []*node, keep func(*node) bool) []*node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n *node) bool { return !keep(n) })
}

// lackingAmount returns a resource of which no node offers what a pod requests, extended
// ones first.
func lackingAmount(set *workload.PodSet, nodes []*node) *Lack {
	names := set.Template.Requests.Names()
	slices.SortStableFunc(names, extendedFirst)
	for _, name := range names {
		asked, most := set.Template.Requests[name], int64(0)
		for _, n := range nodes {
			most = max(most, n.Allocatable[name])
		}
		if most < asked {
			return &Lack{PodSet: set.Name, Amounts: resource.List{name: asked}, Most: most}
		}
	}
	return nil
}

// excludingTerms returns which of the labels that pods select no node has, if one alone
// excludes all nodes.
func excludingTerms(nodes []*node, t *workload.Template) string {
	for _, key := range slices.Sorted(maps.Keys(t.NodeSelector)) {
		value := t.NodeSelector[key]
		if !slices.ContainsFunc(nodes, func(n *node) bool { return n.Labels[key] == value }) {
			return fmt.Sprintf("none has the label %s=%s, which they or the flavors of their queue select", key, value)
		}
	}
	if len(t.Affinity) > 0 {
		return "none matches both their node selector and their required node affinity"
	}
	return "none has all the labels that they or the flavors of their queue select"
}

func taintText(t capacity.Taint) string {
	if t.Value == "" {
		return t.Key + ":" + t.Effect
	}
	return t.Key + "=" + t.Value + ":" + t.Effect
}

// similarResource returns the resource of the nodes whose name is most like that of one
// that no node has, if one is alike.
func similarResource(lack *Lack, nodes []*node) resource.Name {
	asked := lack.Amounts.Names()[0]
	if lack.Most > 0 || len(asked) > mostCompared {
		return ""
	}
	best, distance := resource.Name(""), mostEdits+1
	for _, n := range nodes {
		for name, amount := range n.Allocatable {
			if amount == 0 || len(name) > mostCompared {
				continue
			}
			if d := difference(string(asked), string(name)); d < distance || d == distance && d <= mostEdits && cmp.Compare(name, best) < 0 {
				best, distance = name, d
			}
		}
	}
	return best
}

const (
	mostEdits    = 2
	mostCompared = 128 // bytes of a name
)

// difference returns how unlike two names of resources are: 1 when they differ in case or
// domain alone, else the edits that make one the other.
func difference(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if a == b || a[strings.LastIndex(a, "/")+1:] == b[strings.LastIndex(b, "/")+1:] {
		return 1
	}
	return fault.Edits(a, b)
}
