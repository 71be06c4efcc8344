package book

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/admission"
	"muster.dev/muster/pkg/capacity"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/resource"
	"muster.dev/muster/pkg/workload"
)

// Node takes in a node's present state.
func (b *Book) Node(o *event.NodeObserved, now time.Time) {
	key := admission.NodeKey{Cluster: o.Node.Cluster, Name: o.Node.Name}
	n := b.nodes[key]
	if n == nil {
		n = &node{reserved: resource.List{}, strays: b.straysOn(key)}
		b.nodes[key] = n
	} else if !n.version.Before(o.Version) {
		return
	}
	n.Node, n.version, n.present = o.Node, o.Version, true
	b.noteReadiness(n, now)
	b.changed.node(key)
	b.offer(key)
}

func (b *Book) noteReadiness(n *node, now time.Time) {
	switch {
	case n.Ready:
		n.notReadySince = time.Time{}
	case n.notReadySince.IsZero():
		n.notReadySince = now
	}
}

// NodeRemoved takes a node away and evicts the gangs that have a place there.
func (b *Book) NodeRemoved(o *event.NodeRemoved, now time.Time) {
	key := admission.NodeKey{Cluster: o.Cluster, Name: o.Node}
	if n := b.nodes[key]; n != nil && n.version.Before(o.Version) {
		n.version = o.Version
		b.loseNode(key, now)
	}
}

func (b *Book) loseNode(key admission.NodeKey, now time.Time) {
	n := b.nodes[key]
	if !n.present {
		return
	}
	n.present = false
	n.Node = capacity.Node{Cluster: key.Cluster, Name: key.Name}
	b.changed.node(key)
	b.offer(key)
	b.evictFrom(key, fmt.Sprintf("node %s of cluster %s is gone", key.Name, key.Cluster), now)
}

func (b *Book) evictFrom(key admission.NodeKey, message string, now time.Time) {
	for _, e := range b.inOrder() {
		if e.Cluster != key.Cluster || tearingDown(e) || !e.Holding {
			continue
		}
		if slices.ContainsFunc(e.Placements, func(p workload.Placement) bool { return p.Node == key.Name }) {
			b.tearDown(e, workload.Evicting, &workload.Reason{Kind: workload.ReasonNodeLost, Message: message}, now)
		}
	}
}

// Synced takes in a watcher's full list: what is older and not on it is gone.
func (b *Book) Synced(o *event.CapacitySynced, now time.Time) {
	listed := map[string]bool{}
	for _, name := range o.Nodes {
		listed[name] = true
	}
	for _, key := range b.nodeKeys() {
		if n := b.nodes[key]; key.Cluster == o.Cluster && n.version.Before(o.Version) && !listed[key.Name] {
			n.version = o.Version
			b.loseNode(key, now)
		}
	}
	seen := map[workload.ID]bool{}
	for _, id := range o.Gangs {
		seen[id] = true
	}
	for id, g := range b.gangs {
		if g.cluster == o.Cluster && g.version.Before(o.Version) && !seen[id] {
			g.version, g.pods = o.Version, nil
			b.countStrays(id)
		}
	}
}

// Gang takes in what is seen of a workload's pods.
func (b *Book) Gang(o *event.GangObserved, now time.Time) {
	if g := b.gangs[o.Workload]; g != nil && g.cluster == o.Cluster && !g.version.Before(o.Version) {
		return // old news
	}
	seen := &gang{version: o.Version, cluster: o.Cluster, pods: o.Pods}
	if old := b.gangs[o.Workload]; old != nil && old.cluster == o.Cluster {
		seen.strayOn = old.strayOn
	}
	b.gangs[o.Workload] = seen
	b.countStrays(o.Workload)
	if e := b.live[o.Workload]; e != nil {
		b.checkRunning(e, now)
	}
}

// checkRunning notes that all pods of a gang are ready. The submitter is not
// waited for: KubeRay creates it after the cluster is ready.
func (b *Book) checkRunning(e *entry, now time.Time) {
	g := b.gangs[e.ID]
	if g == nil || g.cluster != e.Cluster || e.Phase != workload.Admitted && e.Phase != workload.Dispatched {
		return
	}
	ready := map[string]int{}
	for _, pod := range g.pods {
		if pod.Attempt == e.Attempt && pod.Ready && pod.Node != "" && !pod.Deleting {
			ready[pod.PodSet]++
		}
	}
	for _, set := range e.PodSets {
		if set.Role != workload.RoleSubmitter && ready[set.Name] < set.Count {
			return
		}
	}
	e.Phase, e.Times.Running = workload.Running, now
	if e.Times.Dispatched.IsZero() {
		e.Times.Dispatched = now
	}
	b.tell(e, now)
}

// countStrays charges to nodes what a workload's pods take beyond what is
// reserved for it there: pods that stayed after their reservation, or landed
// elsewhere.
func (b *Book) countStrays(id workload.ID) {
	g := b.gangs[id]
	if g == nil {
		return
	}
	beyond := map[string]resource.List{}
	for _, pod := range g.pods {
		if pod.Holds() {
			beyond[pod.Node] = beyond[pod.Node].Plus(pod.Requests)
		}
	}
	if e := b.live[id]; e != nil && e.Cluster == g.cluster {
		for _, p := range e.Placements {
			beyond[p.Node] = beyond[p.Node].Minus(e.requests(p.PodSet).Times(int64(p.Pods)))
		}
	}
	for name := range g.strayOn {
		if _, listed := beyond[name]; !listed {
			beyond[name] = nil
		}
	}
	g.strayOn = map[string]bool{}
	for name, amounts := range beyond {
		stray := positive(amounts)
		if len(stray) > 0 {
			g.strayOn[name] = true
		}
		b.setStray(admission.NodeKey{Cluster: g.cluster, Name: name}, id, stray)
	}
	if len(g.pods) == 0 && b.live[id] == nil {
		delete(b.gangs, id)
	}
}

func (b *Book) setStray(key admission.NodeKey, id workload.ID, stray resource.List) {
	n := b.nodes[key]
	if n == nil || stray.Equal(n.strays[id]) {
		return
	}
	if len(stray) == 0 {
		delete(n.strays, id)
	} else {
		n.strays[id] = stray
	}
	b.changed.node(key)
	b.offer(key)
}

// straysOn returns what observed gangs take on a node that was not known.
func (b *Book) straysOn(key admission.NodeKey) map[workload.ID]resource.List {
	strays := map[workload.ID]resource.List{}
	for id, g := range b.gangs {
		for _, pod := range g.pods {
			if g.cluster == key.Cluster && pod.Node == key.Name && pod.Holds() {
				strays[id] = strays[id].Plus(pod.Requests)
			}
		}
	}
	return strays
}

// Tick lets time act: gangs on nodes that have not been ready for the given
// grace are evicted, and reasons that changed in amounts are stored.
func (b *Book) Tick(now time.Time, grace time.Duration) {
	var overdue []admission.NodeKey
	for key, n := range b.nodes {
		if n.present && !n.notReadySince.IsZero() && now.Sub(n.notReadySince) >= grace {
			overdue = append(overdue, key)
		}
	}
	slices.SortFunc(overdue, compareKeys)
	for _, key := range overdue {
		b.evictFrom(key, fmt.Sprintf("node %s of cluster %s has not been ready for %s", key.Name, key.Cluster, grace), now)
	}
	for _, e := range b.lazy {
		b.changed.workloads[e.ID] = e
	}
	clear(b.lazy)
}

func (b *Book) nodeKeys() []admission.NodeKey {
	return slices.SortedFunc(maps.Keys(b.nodes), compareKeys)
}

func compareKeys(x, y admission.NodeKey) int {
	return cmp.Or(cmp.Compare(x.Cluster, y.Cluster), cmp.Compare(x.Name, y.Name))
}

func (b *Book) inOrder() []*entry {
	return slices.SortedFunc(maps.Values(b.live), func(x, y *entry) int { return cmp.Compare(x.order, y.order) })
}

func positive(l resource.List) resource.List {
	above := resource.List{}
	for name, amount := range l {
		if amount > 0 {
			above[name] = amount
		}
	}
	return above
}
