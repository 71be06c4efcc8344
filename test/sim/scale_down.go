package sim

import (
	"fmt"
	"time"
)

// removeNode takes a node away, with its pods.
func (a *autoscaler) removeNode(name string) {
	if a.c.nodes[name] == nil {
		return
	}
	delete(a.c.nodes, name)
	delete(a.idle, name)
	a.c.changed("node " + name)
	for _, p := range a.c.podsOf(func(p *pod) bool { return p.node == name }) {
		a.c.deletePod(p, true)
	}
}

// scaleDown takes nodes away that nothing has used for a while.
func (a *autoscaler) scaleDown() {
	w := a.c.w
	used := map[string]bool{}
	for _, p := range a.c.pods {
		used[p.node] = true
	}
	for _, it := range a.requests() {
		for _, name := range it.nodes {
			used[name] = used[name] || !it.ended
		}
	}
	shown := len(a.placeholders()) > 0 // they would be placed on idle nodes, which stay for them
	for i := range a.nodes {
		name := fmt.Sprintf("scaled-%03d", i+1)
		since, idle := a.idle[name]
		switch {
		case a.c.nodes[name] == nil || used[name] || shown:
			delete(a.idle, name)
		case !idle:
			a.idle[name] = w.now
		case w.now.Sub(since) >= nodesIdle:
			w.narrate("node %s was idle", name)
			w.check.made[madeScaledDown]++
			a.removeNode(name)
		}
	}
	w.after(2*time.Second, a.scaleDown)
}
