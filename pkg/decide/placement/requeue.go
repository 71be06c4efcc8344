package placement

import (
	"slices"

	"muster.dev/muster/pkg/spec/workload"
)

// requeueHint is what has changed on a node: the smallest free amounts that the verdict
// of a member may have seen there.
type requeueHint struct {
	version int64 // of the last change
	dirty   bool
	low     vector
	// incomparable: a verdict may have seen it with other labels, taints or ports, or
	// not at all.
	incomparable bool
}

// recordBefore records what a node was before a change, if a verdict may have seen it
// so.
func (u *unschedulable) recordBefore(n *node) {
	h := &n.hint
	if h.version == u.version || len(u.members) == 0 {
		return
	}
	h.version = u.version
	if !h.dirty {
		h.dirty, h.low, h.incomparable = true, n.free, !n.present
		u.dirty = append(u.dirty, n)
		return
	}
	low := make(vector, max(len(h.low), len(n.free)))
	for i := range low {
		low[i] = min(h.low.at(i), n.free.at(i))
	}
	h.low, h.incomparable = low, h.incomparable || !n.present
}

// relabelled records a change of a node that its free amounts do not show.
func (u *unschedulable) relabelled(n *node) {
	if n.hint.dirty {
		n.hint.incomparable = true
	}
}

// Requeued removes from the unschedulable set, and returns in sorted order, the names
// that may fit because nodes have changed. The verdicts on all others are still valid.
// Changes that a Rollback has undone requeue nothing. The cost depends on the number of
// changed nodes and of different pod templates, not on the size of the set.
func (f *Fleet) Requeued() []string {
	u := &f.unschedulable
	if len(u.dirty) == 0 {
		return nil
	}
	u.version++
	requeued := map[*member]bool{}
	for _, n := range u.dirty {
		if n.hint.incomparable || !n.present {
			for _, m := range u.withSpread {
				requeued[m] = true
			}
		}
		if n.present && (n.hint.incomparable || n.free.exceeds(n.hint.low)) {
			for _, need := range u.order {
				f.noteRoom(need, n, requeued)
			}
		}
		n.hint = requeueHint{version: 0}
	}
	u.dirty = u.dirty[:0]
	var names []string
	for m := range requeued {
		names = append(names, m.name)
		f.RemoveUnschedulable(m.name)
	}
	slices.Sort(names)
	return names
}

// noteRoom adds the room that appeared on a node to a need, and collects the members for
// which it may be enough.
func (f *Fleet) noteRoom(need *need, n *node, requeued map[*member]bool) {
	const many = 1 << 30
	now := f.roomFor(need.template, n.free, many)
	if now == 0 || n.Refuses(need.template) != "" {
		return
	}
	before := 0
	if !n.hint.incomparable {
		before = f.roomFor(need.template, n.hint.low, many)
	}
	need.grown += int64(max(0, now-before))
	for _, w := range need.waiters {
		if !w.any && w.threshold > need.grown {
			break
		}
		requeued[w.member] = true
	}
}

// roomFor returns how many pods of a template free amounts take.
func (f *Fleet) roomFor(t *workload.Template, free vector, limit int64) int {
	for name, amount := range t.Requests {
		if amount <= 0 {
			continue
		}
		column, known := f.columns.index[name]
		if !known || free.at(column) < amount {
			return 0
		}
		limit = min(limit, free.at(column)/amount)
	}
	return int(limit)
}
