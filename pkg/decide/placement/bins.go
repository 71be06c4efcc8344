package placement

import (
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
	at      []int // by domain: its place in the list that shares makes, from 1; else 0
}

// bin is a node on which this gang has pods. Bins are immutable.
type bin struct {
	free vector
	pods countVector // by kind
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
