package sim

import (
	"slices"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// checkRoom: on every node what gangs have or are nominated for is no more than there is,
// by the truth.
func (c *checker) checkRoom() {
	taken := map[string]map[workload.ID]resource.List{}
	charge := func(node string, id workload.ID, amount resource.List) {
		if taken[node] == nil {
			taken[node] = map[workload.ID]resource.List{}
		}
		taken[node][id] = taken[node][id].Plus(amount)
	}
	for _, p := range c.w.cluster.pods {
		if p.node != "" && p.workload != "" {
			charge(p.node, p.workload, p.requests)
		}
	}
	nominations := map[string]map[workload.ID]resource.List{}
	for _, r := range c.w.disk.live {
		for _, p := range r.Placements {
			if nominations[p.Node] == nil {
				nominations[p.Node] = map[workload.ID]resource.List{}
			}
			nominations[p.Node][r.ID] = nominations[p.Node][r.ID].Plus(r.requests[p.PodSet].Times(int64(p.Pods)))
		}
	}
	for name, n := range c.w.cluster.nodes {
		for _, amount := range []resource.Name{"nvidia.com/gpu", "cpu"} {
			var sum int64
			for id, have := range taken[name] {
				sum += max(have[amount], nominations[name][id][amount])
			}
			for id, nomination := range nominations[name] {
				if _, counted := taken[name][id]; !counted {
					sum += nomination[amount]
				}
			}
			if sum > n.Allocatable[amount] {
				c.w.breach("G2", "gangs have or are nominated for %d of %s on %s, which has %d", sum, amount, name, n.Allocatable[amount])
			}
		}
	}
}

// created looks at an object that was created.
func (c *checker) created(o *object) {
	w := c.w
	name := w.submits.nameOf(o.workload)
	for _, other := range w.cluster.objects {
		if other != o && other.workload == o.workload {
			w.breach("G4", "%s has two objects: %s of attempt %d and %s of attempt %d", name, other.name, other.attempt, o.name, o.attempt)
		}
	}
	key := attemptKey{o.workload, o.attempt}
	c.resized(o)
	c.objects[key]++
	if each := w.submits.by[o.workload]; c.objects[key] > 1 && (each == nil || !each.excused) && !c.forgotten(o) {
		w.breach("G4", "attempt %d of %s was created %d times", o.attempt, name, c.objects[key])
	}
	c.createdAt[key] = w.now
	delete(c.lost, key)
}

// excuse reports that a user deleted an object of a workload: if that is in the very
// moment of its creation, it is created once more.
func (c *checker) excuse(id workload.ID) {
	if each := c.w.submits.by[id]; each != nil {
		each.excused = true
	}
}

// grown notes a gang whose pods are all there, or of whose sets each has one.
func (c *checker) grown(o *object) {
	there, sets := 0, map[string]bool{}
	for _, p := range c.w.cluster.podsOf(func(p *pod) bool { return p.owner == o.uid && p.workload == o.workload && !p.deleting }) {
		there++
		sets[p.set] = true
	}
	if there == 0 {
		return
	}
	key := attemptKey{o.workload, o.attempt}
	if there >= min(o.atStart, o.size()) {
		c.whole[key] = true
	}
	if !slices.ContainsFunc(o.sets, func(s workload.PodSet) bool { return s.Count > 0 && !sets[s.Name] }) {
		c.proven[key] = true
	}
}

// bound looks at a pod that was bound to a node.
func (c *checker) bound(p *pod) {
	c.dirty = true
	if p.workload == "" {
		return
	}
	name := c.w.submits.nameOf(p.workload)
	c.starts(p)
	for _, other := range c.w.cluster.pods {
		if other.workload == p.workload && other.attempt != p.attempt && other.node != "" {
			c.w.breach("G4", "%s runs pods of attempts %d and %d", name, other.attempt, p.attempt)
		}
	}
}
