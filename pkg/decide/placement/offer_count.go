package placement

import (
	"slices"

	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// offerCount counts what empty nodes offer to a gang, until that is enough: most gangs need
// few of the nodes.
type offerCount struct {
	podSets []workload.PodSet
	room    []int           // of the nodes counted, for each pod set alone
	asked   resource.List   // by the whole gang
	names   []resource.Name // of asked, accelerators first
	offered resource.List   // of it, by the nodes counted that take a pod that requests it
}

func newOfferCount(podSets []workload.PodSet) *offerCount {
	c := &offerCount{podSets: podSets, room: make([]int, len(podSets)), asked: resource.List{}, offered: resource.List{}}
	for i := range podSets {
		for name, amount := range podSets[i].Template.Requests {
			c.asked[name] = add(c.asked[name], multiply(amount, int64(podSets[i].Count)))
		}
	}
	c.names = c.asked.Names()
	slices.SortStableFunc(c.names, extendedFirst)
	return c
}

// enough reports whether the nodes counted have room for each pod set alone, and offer what
// all ask for together.
func (c *offerCount) enough() bool { return c.lack() == nil }

// add counts a node, and reports whether it offers anything to the gang.
func (c *offerCount) add(n *capacity.Node) (offersAny bool) {
	counted := map[resource.Name]bool{}
	for i := range c.podSets {
		set := &c.podSets[i]
		if set.Count == 0 || !offers(n, &set.Template) {
			continue
		}
		offersAny = true
		c.room[i] += roomOn(n, &set.Template, set.Count-c.room[i])
		for name, amount := range set.Template.Requests {
			if amount > 0 && !counted[name] {
				counted[name] = true
				c.offered[name] = add(c.offered[name], n.Allocatable[name])
			}
		}
	}
	return offersAny
}

// roomOn is how many pods an empty node that offers room to one takes, at most a limit.
func roomOn(n *capacity.Node, t *workload.Template, limit int) int {
	if len(t.HostPorts) > 0 {
		return min(1, limit)
	}
	room := int64(limit)
	for name, amount := range t.Requests {
		if amount > 0 {
			room = min(room, n.Allocatable[name]/amount)
		}
	}
	return int(room)
}

// lack returns what the nodes counted do not offer; nil when they offer enough.
func (c *offerCount) lack() *Lack {
	for i := range c.podSets {
		if set := &c.podSets[i]; c.room[i] < set.Count {
			return &Lack{PodSet: set.Name, Pods: set.Count, Room: c.room[i]}
		}
	}
	for _, name := range c.names {
		if c.asked[name] > c.offered[name] {
			return &Lack{Amounts: resource.List{name: c.asked[name]}, Sum: c.offered[name]}
		}
	}
	return nil
}
