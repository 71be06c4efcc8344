package sim

import (
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// Nodes that come for a gang that has asked for them are kept for it. The check is written from
// docs/queues.md, "Nodes that are not there yet", and counts places by itself. What is kept for
// gangs for which others are evicted is checked in seeds of policy (checkNominations).

const (
	// keptFor is how long places are kept when a request is provisioned, and before that after the
	// youngest node has come.
	keptFor = 5 * time.Minute
	// nodeKeptFor bounds how long a node is kept before that.
	nodeKeptFor = 10 * time.Minute
)

// claim is what is kept for a gang that has asked: places for a number of pods that request the same,
// on some nodes.
type claim struct {
	pods     int64
	requests resource.List
	on       []string
}

// checkKept: a gang that is admitted takes no place that is kept for one that has asked for nodes. Of
// several that have asked, each has what is left by those before it; only the first is looked at.
func (c *checker) checkKept(changes state.Changes, kept func(workload.ID) bool) {
	l := c.w.disk
	if !c.w.scaled() || !l.settled() {
		return
	}
	admitted := map[workload.ID]*row{}
	var at time.Time
	for _, reserved := range changes.Reserved {
		if x := l.live[reserved.Workload]; x != nil && c.attempts[x.ID] != x.Attempt && x.Cluster == clusterName {
			admitted[x.ID], at = x, x.Times.Admitted
		}
	}
	var first *row
	for _, asker := range l.inOrder() {
		if len(admitted) > 0 && c.keeps(asker, at) && (first == nil || comesBefore(asker, first)) {
			first = asker
		}
	}
	if first != nil && !kept(first.ID) {
		c.checkClaim(first, admitted, at)
	}
}

// keeps reports whether places are kept for a gang, which had asked before the commit.
func (c *checker) keeps(asker *row, at time.Time) bool {
	before := c.was[asker.ID]
	if !asksForNodes(asker.Record) || !asksForNodes(before) || before.Provisioning.Number != asker.Provisioning.Number || asker.Provisioning.Cluster != clusterName {
		return false
	}
	claimed := c.claimOf(asker, at)
	return claimed.pods > 0 && len(claimed.on) > 0
}

// checkClaim: without the gangs that must leave an asker its places it would have no more places.
func (c *checker) checkClaim(asker *row, admitted map[workload.ID]*row, at time.Time) {
	l := c.w.disk
	var takers []string
	with := l.freeNow()
	without := maps.Clone(with)
	for _, id := range sortedKeys(admitted) {
		if !c.mustLeave(admitted[id], asker) {
			continue
		}
		takers = append(takers, c.w.submits.nameOf(id))
		for _, h := range l.holds[id] {
			if free, ready := without[h.node]; ready {
				without[h.node] = free.Plus(h.requests.Times(h.pods))
			}
		}
	}
	if len(takers) == 0 {
		return
	}
	c.made[madeKept]++
	claimed := c.claimOf(asker, at)
	if had, has := claimed.places(without), claimed.places(with); has < had {
		c.w.breach("G1", "%s took of the places on %s that are kept at %s for %s, which has asked for nodes by %s at %s: it has places for %d of %d pods, and had for %d",
			words(takers), words(claimed.on), at.Sub(c.w.start), c.w.submits.nameOf(asker.ID), asker.Provisioning.Name, asker.Provisioning.Since.Sub(c.w.start), has, claimed.pods, had)
	}
}

// mustLeave reports whether a gang that starts leaves an asker what is kept for it. One of a higher
// priority takes it. Of two that have asked, the order decides; between queues it is not looked at
// here. A gang that shows itself as pods keeps what it can use from those behind it only.
func (c *checker) mustLeave(x, asker *row) bool {
	switch {
	case x.ID == asker.ID || x.Priority > asker.Priority:
		return false
	case asker.Provisioning.Placeholders():
		return comesBefore(asker, x)
	case asksForNodes(c.was[x.ID]):
		return x.Queue == asker.Queue && comesBefore(asker, x)
	}
	return true
}

// claimOf is what is kept for a gang at a time, by the clock of who decides.
func (c *checker) claimOf(asker *row, at time.Time) claim {
	p, k := asker.Provisioning, claim{}
	ready := p.SettlesSince()
	if ready.IsZero() && !p.Placeholders() {
		for _, asked := range p.Pods {
			k.add(asker, asked.PodSet, int64(asked.Pods))
		}
		k.on = c.cameFor(p.Since, at)
		return k
	}
	if !p.Placeholders() && at.Sub(ready) >= keptFor {
		return k
	}
	for i := range asker.PodSets {
		k.add(asker, asker.PodSets[i].Name, int64(asker.PodSets[i].Count))
	}
	k.on = c.knownNodes()
	return k
}

// add adds pods that use GPUs, which are alike in each gang here. Others have a place anywhere.
func (k *claim) add(asker *row, set string, pods int64) {
	for i := range asker.PodSets {
		if s := &asker.PodSets[i]; s.Name == set && s.Template.Requests[ruledResource] > 0 {
			k.pods, k.requests = k.pods+pods, s.Template.Requests
		}
	}
}

// cameFor lists the nodes that are younger than a request and kept for it at a time: those of the
// last ten minutes, until five minutes after the youngest of them.
func (c *checker) cameFor(since, at time.Time) (nodes []string) {
	var youngest time.Time
	for _, name := range c.knownNodes() {
		created := c.w.cluster.created[name]
		if !created.After(since) || created.After(at) {
			continue
		}
		youngest = later(youngest, created)
		if at.Sub(created) < nodeKeptFor {
			nodes = append(nodes, name)
		}
	}
	if at.Sub(youngest) >= keptFor {
		return nil
	}
	return nodes
}

// knownNodes are those that the ledger has, some of which may have gone a moment ago. Their age is
// the true one.
func (c *checker) knownNodes() (names []string) {
	for _, key := range slices.SortedFunc(maps.Keys(c.w.disk.nodes), compareKeys) {
		if key.Cluster == clusterName && c.w.disk.nodes[key].Present {
			names = append(names, key.Name)
		}
	}
	return names
}

// places counts the pods of a claim that have a place on its nodes, given what is free there.
func (k *claim) places(free map[admission.NodeKey]resource.List) (places int64) {
	for _, name := range k.on {
		fits, there := k.pods, free[admission.NodeKey{Cluster: clusterName, Name: name}]
		for _, amount := range k.requests.Names() {
			if k.requests[amount] > 0 {
				fits = min(fits, max(0, there[amount])/k.requests[amount])
			}
		}
		places += fits
	}
	return min(places, k.pods)
}

// freeNow is what is free on ready nodes by the ledger.
func (l *ledger) freeNow() map[admission.NodeKey]resource.List {
	free := map[admission.NodeKey]resource.List{}
	for key, n := range l.nodes {
		if n.Present && n.Ready && !n.Cordoned {
			free[key] = n.Allocatable.Minus(n.Used)
		}
	}
	for _, holds := range l.holds {
		for _, h := range holds {
			if there, ready := free[h.node]; ready {
				free[h.node] = there.Minus(h.requests.Times(h.pods))
			}
		}
	}
	return free
}
