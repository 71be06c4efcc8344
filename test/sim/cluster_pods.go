package sim

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/spec/resource"
)

// keepPods is KubeRay: it makes the pods that are missing, gated as the template
// says.
func (c *cluster) keepPods(key string, o *object) {
	if c.objects[key] != o {
		return
	}
	most := 1 + c.w.random.IntN(8) // it need not make all at once
	most = c.podsLeft(o.namespace, most)
	for _, set := range o.sets {
		have := len(c.podsOf(func(p *pod) bool { return p.owner == o.uid && p.set == set.Name && !p.deleting }))
		for ; have < set.Count && most > 0; have, most = have+1, most-1 {
			o.made++
			p := &pod{
				namespace: o.namespace, uid: c.uid(), workload: o.workload, attempt: o.attempt, set: set.Name, owner: o.uid, ownerName: o.name,
				requests: set.Template.Requests, gated: o.epoch > 0,
			}
			p.name = o.name + "-" + p.uid
			c.pods[p.namespace+"/"+p.name] = p
			c.changed("pod " + p.namespace + "/" + p.name)
			c.schedule(p)
		}
		c.dropPods(o, set)
	}
	c.w.check.grown(o)
	c.w.after(c.w.between(500*time.Millisecond, 2*time.Second), func() { c.keepPods(key, o) })
}

// schedule is the scheduler: it binds a pod that has no gate where it is pinned,
// when it fits.
func (c *cluster) schedule(p *pod) {
	key := p.namespace + "/" + p.name
	if p.gated || p.node != "" || p.deleting || c.pods[key] != p {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
		n := c.nodes[name]
		if p.hostname != "" && p.hostname != name || n.Cordoned || !n.Ready || len(c.overCommitted(name, p.requests)) > 0 {
			continue
		}
		p.node = name
		c.w.check.bound(p)
		c.changed("pod " + key)
		c.w.after(c.w.between(50*time.Millisecond, 2*time.Second), func() { c.run(p) })
		return
	}
	c.w.after(time.Second, func() { c.schedule(p) })
}

// run is the kubelet: it makes a bound pod ready.
func (c *cluster) run(p *pod) {
	n := c.nodes[p.node]
	if c.pods[p.namespace+"/"+p.name] != p || p.ready || n == nil {
		return
	}
	if !n.Ready {
		c.w.after(time.Second, func() { c.run(p) })
		return
	}
	if p.ready = !p.deleting; p.ready {
		c.w.check.readied(p)
	}
	c.changed("pod " + p.namespace + "/" + p.name)
}

// overCommitted names the resources of a node that are not enough for what is bound
// there and one more.
func (c *cluster) overCommitted(node string, more resource.List) []resource.Name {
	free := c.nodes[node].Allocatable.Minus(more)
	for _, p := range c.pods {
		if p.node == node {
			free = free.Minus(p.requests)
		}
	}
	var lacking []resource.Name
	for _, name := range free.Names() {
		if free[name] < 0 {
			lacking = append(lacking, name)
		}
	}
	return lacking
}

// deletePod ends a pod after its grace; by force at once.
func (c *cluster) deletePod(p *pod, force bool) {
	key := p.namespace + "/" + p.name
	if c.pods[key] != p {
		return
	}
	gone := func() {
		if c.pods[key] == p {
			delete(c.pods, key)
			c.changed("pod " + key)
		}
	}
	n := c.nodes[p.node]
	switch {
	case force || p.node == "" || n == nil:
		gone()
	case !p.deleting:
		grace := c.w.between(100*time.Millisecond, 5*time.Second)
		p.deleting, p.ready, p.goneBy = true, false, c.w.now.Add(grace)
		c.changed("pod " + key)
		c.w.after(grace, func() { c.finish(p, gone) })
	}
}

// finish waits for a kubelet that does not answer.
func (c *cluster) finish(p *pod, gone func()) {
	if n := c.nodes[p.node]; n != nil && !n.Ready {
		c.w.after(time.Second, func() { c.finish(p, gone) })
		return
	}
	gone()
}

func (c *cluster) podsOf(match func(*pod) bool) []*pod {
	var all []*pod
	for _, p := range c.pods {
		if match(p) {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b *pod) int { return cmp.Compare(a.name, b.name) })
	return all
}
