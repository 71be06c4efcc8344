package admission

import (
	"cmp"
	"container/heap"
	"slices"

	"muster.dev/muster/pkg/decide/quota"
)

// orderByUse orders the queues by what LocalQueues have used until now.
func (d *decision) orderByUse() {
	for _, q := range d.state.sorted {
		if len(q.locals) == 0 {
			continue
		}
		if d.updateUse(q) {
			d.reorder(q)
		}
	}
}

// updateUse reads what the LocalQueues of a queue have used, and reports whether they come in
// another order than before. They are few, and the gangs that wait are many.
func (d *decision) updateUse(q *queue) (reordered bool) {
	type use struct{ before, now float64 }
	uses := make([]use, 0, len(q.locals))
	for name, local := range q.locals {
		next := use{local.use, d.state.tree.UsageOf(name)}
		local.use = next.now
		uses = append(uses, next)
	}
	slices.SortFunc(uses, func(a, b use) int { return cmp.Compare(a.before, b.before) })
	for i := range uses[1:] {
		a, b := uses[i], uses[i+1]
		if cmp.Compare(a.before, b.before) != cmp.Compare(a.now, b.now) {
			return true
		}
	}
	return false
}

// noteEntry counts an admission for its LocalQueue, and has others go before it.
func (d *decision) noteEntry(g *Started, charges []quota.Charge) {
	name := localOf(g.Workload)
	g.queue.quota.Enter(name, charges)
	local := g.queue.locals[name]
	if local == nil {
		return
	}
	before := local.use
	local.use = d.state.tree.UsageOf(name)
	for _, other := range g.queue.locals {
		if other != local && other.use >= before && other.use <= local.use {
			d.reorder(g.queue)
			return
		}
	}
}

// reorder restores the order of a queue whose LocalQueues have used something.
func (d *decision) reorder(q *queue) {
	if q.all.Len() == 0 {
		return
	}
	q.front = nil
	heap.Init(&q.all)
	heap.Init(&q.open)
	d.noteKept(q)
}

// rankByUse ranks candidates of one queue by the use of their LocalQueues, the largest first.
// As in Kueue, gangs of different ClusterQueues are not compared by it.
func (s *State) rankByUse(list []candidate) {
	for _, c := range list {
		if c.queue != list[0].queue || !c.queue.quota.OrdersByUsage() {
			return
		}
	}
	use := map[string]float64{}
	for _, c := range list {
		if name := localOf(c.Workload); !has(use, name) {
			use[name] = s.tree.UsageOf(name)
		}
	}
	for i, c := range list {
		mine := use[localOf(c.Workload)]
		for _, other := range use {
			if other > mine {
				list[i].useRank++
			}
		}
	}
}

func has(use map[string]float64, name string) bool {
	_, there := use[name]
	return there
}
