package sim

import (
	"slices"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// What evicted gangs leave is for those for whom they were evicted, until these start.

// ground is what nominations are made on: which ledger, which configuration, how many GPUs.
type ground struct {
	era, revision int
	gpus          int64
}

// nominations are those of a commit, by what they ask for.
type nominations struct {
	waiting map[workload.ID]int64 // after it
	started map[workload.ID]int64 // by it
}

// checkNominations: of what gangs that are being evicted leave, those for whom they are
// have enough, whatever starts meanwhile: places on nodes and quota.
func (c *checker) checkNominations(before, after ledgerState, changes state.Changes) {
	standing := c.standing(before, after)
	if len(changes.Reserved)+len(changes.Replaced) == 0 || len(standing.waiting) == 0 {
		return
	}
	usedBefore, usedAfter := map[string]int64{}, map[string]int64{}
	for _, name := range ruledQueues {
		usedBefore[name] = before.used[name] - before.leaving[name]
		usedAfter[name] = after.used[name] - after.leaving[name]
	}
	nominated, started := int64(0), int64(0)
	for id, gpus := range standing.started {
		started += gpus
		usedBefore[c.w.disk.live[id].Queue] += gpus
	}
	var names []string
	for _, id := range sortedKeys(standing.waiting) {
		gpus, queue := standing.waiting[id], c.w.disk.live[id].Queue
		nominated += gpus
		usedBefore[queue] += gpus
		usedAfter[queue] += gpus
		names = append(names, c.w.submits.nameOf(id))
	}
	had, has := c.freeGPUs(before), c.freeGPUs(after)
	if has < nominated && had >= nominated+started && c.calmNodes() && !dropsNode(changes) {
		c.w.breach("G1", "%s wait for gangs to be evicted and ask for %d, and others took of what these leave: there are %d, and were %d", words(names), nominated, has, had)
	}
	rules := c.w.disk.rules
	was := rules.excess(usedBefore)
	for scope, excess := range rules.excess(usedAfter) {
		if was[scope] == 0 {
			c.w.breach("G2", "%s wait for gangs to be evicted, and others took their quota: with them %s uses %d more than it may", words(names), scope, excess)
		}
	}
}

// standing lists the nominated gangs before and after a commit, and those that had a
// nomination before and have not started, whatever their reasons say since. Of the latter a
// nomination ends with the configuration and the nodes that it was made on, and with the
// order of those who wait, which operators change.
func (c *checker) standing(before, after ledgerState) nominations {
	l := c.w.disk
	on, calm := ground{l.era, l.rules.revision, l.gpus()}, c.calmNodes()
	if c.nominatedOn != on || !calm || c.reordered() {
		c.nominatedOn = on
		clear(c.nominations)
	}
	found := nominations{map[workload.ID]int64{}, map[workload.ID]int64{}}
	note := func(id workload.ID, nominations bool) {
		switch r := l.live[id]; {
		case r == nil:
		case r.Holding && !isLeaving(r.Record):
			found.started[id] = asked(r.Record)
		case r.Phase == workload.Queued && nominations:
			found.waiting[id] = askedAtLeast(r.Record)
		}
	}
	for id, attempt := range c.nominations {
		if r := l.live[id]; r != nil && r.Attempt == attempt {
			note(id, true)
		}
		if _, waits := found.waiting[id]; !waits {
			delete(c.nominations, id)
		}
	}
	for id := range before.nominations {
		_, still := after.nominations[id]
		note(id, still)
	}
	for id := range after.nominations {
		if _, had := before.nominations[id]; calm && !had {
			c.nominations[id] = l.live[id].Attempt
		}
	}
	return found
}

// gpus is what all nodes have.
func (l *ledger) gpus() (sum int64) {
	for _, n := range l.nodes {
		sum += n.Allocatable[ruledResource]
	}
	return sum
}

// calmNodes reports whether all nodes are as they are to gangs alone. Where one is
// gone, not ready, or used by unmanaged pods, a nomination may hold places that cannot be
// had now, and others may take what is free elsewhere.
func (c *checker) calmNodes() bool {
	for _, n := range c.w.disk.nodes {
		if !n.Present || !n.Ready || n.Used[ruledResource] > 0 {
			return false
		}
	}
	return true
}

// dropsNode reports whether a node is gone with a commit, which moves what was on it.
func dropsNode(changes state.Changes) bool {
	return slices.ContainsFunc(changes.Nodes, func(n state.NodeRow) bool { return n.Drop })
}

// freeGPUs is what is free on ready nodes, as they are now, once those have gone that
// are going.
func (c *checker) freeGPUs(s ledgerState) (free int64) {
	nodes := c.w.disk.nodes
	for _, n := range nodes {
		if n.Present && n.Ready {
			free += n.Allocatable[ruledResource] - n.Used[ruledResource]
		}
	}
	for _, holds := range s.stand {
		for _, h := range holds {
			if n := nodes[h.node]; n.Present && n.Ready {
				free -= h.pods * h.requests[ruledResource]
			}
		}
	}
	return free
}
