package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/spec/resource"
)

// strike causes a fault of the cluster and says what it struck; empty for nothing.
func (c *cluster) strike(f TimedFault) string {
	switch f.Fault {
	case NodeLost, NodeUnready:
		return c.strikeNode(f)
	case ObjectGone:
		keys := slices.Sorted(maps.Keys(c.objects))
		if len(keys) == 0 {
			return ""
		}
		key := keys[f.Pick%uint64(len(keys))]
		c.w.check.excuse(c.objects[key].workload)
		c.deleteObject(key)
		return key
	case PodGone:
		all := c.podsOf(func(p *pod) bool { return p.workload != "" })
		if len(all) == 0 {
			return ""
		}
		p := all[f.Pick%uint64(len(all))]
		c.deletePod(p, f.Pick&64 != 0)
		return p.name
	case Forged:
		return c.forge(f)
	case Intruder:
		return c.intrude(f)
	case Cramped:
		return c.cramp(f)
	}
	return ""
}

// strikeNode takes a node away for a while, or its kubelet.
func (c *cluster) strikeNode(f TimedFault) string {
	names := slices.Sorted(maps.Keys(c.nodes))
	if len(names) < 3 {
		return ""
	}
	name := names[f.Pick%uint64(len(names))]
	n := c.nodes[name]
	if f.Fault == NodeUnready {
		if !n.Ready {
			return ""
		}
		n.Ready = false
		c.changed("node " + name)
		for _, p := range c.podsOf(func(p *pod) bool { return p.node == name }) {
			p.ready = false
			c.changed("pod " + p.namespace + "/" + p.name)
		}
		c.w.after(f.For, func() {
			if c.nodes[name] != n {
				return
			}
			n.Ready = true
			c.changed("node " + name)
			for _, p := range c.podsOf(func(p *pod) bool { return p.node == name }) {
				c.run(p)
			}
		})
		return fmt.Sprintf("%s for %s", name, f.For)
	}
	delete(c.nodes, name)
	c.changed("node " + name)
	// Kubernetes' garbage collector removes the pods of a node that is no more.
	for _, p := range c.podsOf(func(p *pod) bool { return p.node == name }) {
		c.w.after(c.w.between(0, 10*time.Second), func() { c.deletePod(p, true) })
	}
	c.w.after(10*time.Second+f.For, func() { c.addNode(name) })
	return fmt.Sprintf("%s for %s", name, f.For)
}

// intrude binds an unmanaged pod where there is room now, reserved or not.
func (c *cluster) intrude(f TimedFault) string {
	names := slices.Sorted(maps.Keys(c.nodes))
	name := names[f.Pick%uint64(len(names))]
	requests := resource.List{"cpu": 1000, "nvidia.com/gpu": 1 + int64(f.Pick%2), resource.Pods: 1}
	if !c.nodes[name].Ready || len(c.overCommitted(name, requests)) > 0 {
		return ""
	}
	c.intruders++
	p := &pod{namespace: "other", name: fmt.Sprintf("intruder-%d", c.intruders), uid: c.uid(), requests: requests, node: name, ready: true}
	c.pods[p.namespace+"/"+p.name] = p
	c.changed("pod " + p.namespace + "/" + p.name)
	c.w.after(f.For, func() { c.deletePod(p, false) })
	return fmt.Sprintf("%s on %s for %s", p.name, name, f.For)
}
