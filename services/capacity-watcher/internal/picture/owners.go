package picture

import (
	"slices"
	"strings"

	"muster.dev/muster/pkg/event"
)

// Owner is what is known of an object that controls others: what controls it.
type Owner struct {
	// Controller is the UID of the object's own controller; empty for none.
	Controller string
	// Seen says that objects of the controller's kind are recorded by SetOwner.
	Seen bool
}

// SetOwner records an object that may control pods, by its UID.
func (p *Picture) SetOwner(uid string, owner Owner) {
	if known, ok := p.owners[uid]; ok && known == owner {
		return
	}
	p.owners[uid] = owner
	p.touchOwned(uid)
}

// RemoveOwner records that an object is gone.
func (p *Picture) RemoveOwner(uid string) {
	if _, ok := p.owners[uid]; ok {
		delete(p.owners, uid)
		p.touchOwned(uid)
	}
}

// touchOwned marks the gangs as changed that have pods of the object.
func (p *Picture) touchOwned(uid string) {
	for name := range p.controlled[uid] {
		p.dirty.add(Key{Gang: p.members[name].Workload})
	}
}

// longestChain bounds the walk from a pod to what made it.
const longestChain = 8

// chain returns what made a pod.
func (p *Picture) chain(namespace string, m Member) event.PodChain {
	if m.Owner.Controller == "" {
		return event.PodChain{Namespace: namespace, Owners: []string{m.UID}}
	}
	c := event.PodChain{Namespace: namespace}
	for next := m.Owner; ; {
		c.Owners = append(c.Owners, next.Controller)
		above, known := p.owners[next.Controller]
		switch {
		case !next.Seen, !known, len(c.Owners) == longestChain:
			c.Open = true
			return c
		case above.Controller == "":
			return c
		}
		next = above
	}
}

// chains collects the chains of a gang's pods, each once.
type chains struct {
	all []event.PodChain
	at  map[string]int // from 1
}

func (c *chains) add(chain event.PodChain) int {
	key := chain.Namespace + "/" + strings.Join(chain.Owners, "/")
	if i, ok := c.at[key]; ok {
		return i
	}
	if c.at == nil {
		c.at = map[string]int{}
	}
	c.all = append(c.all, chain)
	c.at[key] = len(c.all)
	return len(c.all)
}

// toldBytes bounds what is told of one gang's pods, roughly. It is half of what the
// bus takes.
const toldBytes = 4 << 20

// told returns the pods of a gang that are told of as its own, in order. Labels can
// be forged, in any namespace and number: when there are more than fit a message,
// those of the namespace with the fewest come first, and the others only count as
// used on their nodes.
func (p *Picture) told(gang map[Pod]struct{}) (told, others []Pod) {
	names := sortedPods(gang)
	size := 0
	for _, name := range names {
		size += p.members[name].size()
	}
	if size <= toldBytes {
		return names, nil
	}
	in := map[string]int{}
	for _, name := range names {
		in[name.Namespace]++
	}
	slices.SortStableFunc(names, func(a, b Pod) int { return in[a.Namespace] - in[b.Namespace] })
	size = 0
	for i, name := range names {
		if size += p.members[name].size(); size > toldBytes {
			return names[:i], names[i:]
		}
	}
	return names, nil
}

// size is about how many bytes a pod takes in a message.
func (m Member) size() int {
	size := 200 + len(m.Name) + len(m.PodSet) + len(m.RayCluster) + len(m.Node) + len(m.UID) + len(m.Owner.Controller)
	for name := range m.Requests {
		size += len(name) + 24
	}
	return size
}
