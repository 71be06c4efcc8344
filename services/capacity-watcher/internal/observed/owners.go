package observed

import (
	"slices"
	"strings"

	"muster.dev/muster/pkg/message/event"
)

// Owner is an object's controller.
type Owner struct {
	// Controller is the UID of the controller; empty for none.
	Controller string
	// Seen means that objects of the controller's kind are recorded by SetOwner.
	Seen bool
}

// SetOwner records an object that may control pods, by its UID.
func (p *Cache) SetOwner(uid string, owner Owner) {
	if known, ok := p.owners[uid]; ok && known == owner {
		return
	}
	p.owners[uid] = owner
	p.touchOwned(uid)
}

// RemoveOwner records that an object is gone.
func (p *Cache) RemoveOwner(uid string) {
	if _, ok := p.owners[uid]; ok {
		delete(p.owners, uid)
		p.touchOwned(uid)
	}
}

// touchOwned marks the gangs with pods of the object as changed.
func (p *Cache) touchOwned(uid string) {
	for name := range p.controlled[uid] {
		p.dirty.add(Key{Gang: p.members[name].Workload})
	}
}

// longestChain bounds the walk from a pod up its controllers.
const longestChain = 8

// chain returns the controllers of a pod, bottom up; Open means that more may follow.
func (p *Cache) chain(namespace string, m Member) event.PodChain {
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

// chains collects the distinct chains of a gang's pods.
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

// gangBytes roughly bounds the size of one gang's message. It is half of what the bus
// takes.
const gangBytes = 4 << 20

// split returns the pods of a gang that go in its message, in order, and the others.
// Labels can be forged, in any namespace and number: if the pods do not fit one message,
// those of the namespace with the fewest come first, and the others only count as used
// on their nodes.
func (p *Cache) split(gang map[Pod]struct{}) (own, others []Pod) {
	names := sortedPods(gang)
	size := 0
	for _, name := range names {
		size += p.members[name].size()
	}
	if size <= gangBytes {
		return names, nil
	}
	in := map[string]int{}
	for _, name := range names {
		in[name.Namespace]++
	}
	slices.SortStableFunc(names, func(a, b Pod) int { return in[a.Namespace] - in[b.Namespace] })
	size = 0
	for i, name := range names {
		if size += p.members[name].size(); size > gangBytes {
			return names[:i], names[i:]
		}
	}
	return names, nil
}

// size estimates the bytes of a pod in a message.
func (m Member) size() int {
	size := 200 + len(m.Name) + len(m.PodSet) + len(m.RayCluster) + len(m.Node) + len(m.UID) + len(m.Owner.Controller)
	for name := range m.Requests {
		size += len(name) + 24
	}
	return size
}
