package placement

import (
	"cmp"
	"maps"
	"slices"
)

// packing is a greedy placement of a gang: pod by pod, each on the best node. It may
// fail where the exact search does not.
type packing struct {
	*problem
	typical []*expected
	weight  int64 // of typical, in pods
	bins    map[*node]bin
}

// bin is a node on which this gang has pods. Bins are immutable.
type bin struct {
	free vector
	pods countVector // by kind
}

// packable reports whether packing supports the rules of the gang.
func (p *problem) packable() bool {
	bound := make([]int, len(p.kinds))
	for _, r := range p.rules {
		switch r.kind {
		case spread:
			return false
		case slice:
			if p.kinds[r.kinds[0]].count%r.size != 0 {
				return false
			}
		case apart:
			if r.key != perNode {
				return false
			}
		case bind:
			for _, k := range r.kinds {
				if bound[k]++; bound[k] > 1 {
					return false
				}
			}
		}
	}
	return true
}

// pack places all kinds, the hardest first. It returns the placement and the first kind
// that did not fit wholly, or nil.
func (p *problem) pack() (*packing, *kind) {
	k := &packing{problem: p, bins: make(map[*node]bin, len(p.kinds))}
	k.typical, k.weight = p.fleet.typicalPods()
	done := make([]bool, len(p.kinds))
	for _, i := range p.hardestFirst() {
		if done[i] {
			continue
		}
		if r := p.bound(i); r != nil {
			for _, j := range r.kinds {
				done[j] = true
			}
			if !k.fillOneDomain(r) {
				return k, &p.kinds[i]
			}
		} else if !k.fill(i, p.kinds[i].count, nil) {
			return k, &p.kinds[i]
		}
	}
	return k, nil
}

// hardestFirst orders kinds by what they ask: devices, then CPU, memory and the rest.
func (p *problem) hardestFirst() []int {
	order := make([]int, len(p.kinds))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := &p.kinds[i], &p.kinds[j]
		if byDevices := cmp.Compare(b.devices, a.devices); byDevices != 0 {
			return byDevices
		}
		for _, column := range p.fleet.columns.order {
			if order := cmp.Compare(b.asked(column), a.asked(column)); order != 0 {
				return order
			}
		}
		return 0
	})
	return order
}

func (k *kind) asked(column int) int64 {
	for _, a := range k.asks {
		if a.column == column {
			return a.amount
		}
	}
	return 0
}

// bound returns the rule that binds a kind to one domain, nil when there is none.
func (p *problem) bound(kind int) *rule {
	for i, r := range p.rules {
		if r.kind == bind && slices.Contains(r.kinds, kind) {
			return &p.rules[i]
		}
	}
	return nil
}

// fill places pods of a kind on nodes, all of the fleet when nodes is nil. It
// reports whether all have a place.
func (p *packing) fill(kind, pods int, nodes []*node) bool {
	if nodes == nil {
		if levels := p.levelsOf(kind); len(levels) > 0 {
			return p.fillLevels(kind, pods, p.fleet.inOrder(), levels)
		}
	}
	q := &spots{packing: p, kind: kind}
	if nodes == nil {
		q.addGroups()
	} else {
		q.addNodes(nodes)
	}
	for ; pods > 0; pods-- {
		if len(q.heap) == 0 && !q.more() {
			return false
		}
		q.placeOne()
	}
	return true
}

// room returns how many pods of a kind a node takes in addition to those of this gang,
// at most limit.
func (p *packing) room(kind int, n *node, limit int) int {
	k := &p.kinds[kind]
	taken, touched := p.bins[n]
	if !touched {
		return k.on(n.group, limit)
	}
	if k.on(n.group, 1) == 0 || p.conflicts(kind, taken.pods) {
		return 0
	}
	return k.fits(taken.free, min(limit, k.most-taken.pods[kind]))
}

// conflicts reports whether rules on single nodes keep a kind apart from what is there.
func (p *problem) conflicts(kind int, there countVector) bool {
	return slices.ContainsFunc(p.rules, func(r rule) bool {
		if r.kind != apart || r.key != perNode || !slices.Contains(r.kinds, kind) {
			return false
		}
		return there[r.kinds[0]+r.kinds[1]-kind] > 0
	})
}

// put places one pod of a kind on a node.
func (p *packing) put(kind int, n *node) bin {
	taken, touched := p.bins[n]
	updated := bin{free: n.free, pods: make(countVector, len(p.kinds))}
	if touched {
		updated.free = taken.free
		copy(updated.pods, taken.pods)
	}
	updated.free = p.kinds[kind].minus(updated.free, 1)
	updated.pods[kind]++
	p.bins[n] = updated
	return updated
}

// copyBins returns a copy of the bins, to go back to.
func (p *packing) copyBins() map[*node]bin { return maps.Clone(p.bins) }
