package admission

import (
	"cmp"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// A ClusterQueue with an AdmissionScope orders its workloads by what their LocalQueues have
// used, as Kueue does: the least use first, and then as without it. Use changes with time and
// with each admission, so the order is computed again at the beginning of each decision, and
// after each admission in it.

// localQueue is a LocalQueue of such a ClusterQueue while workloads of it wait there.
type localQueue struct {
	use     float64 // as of the last decision, or the last admission in it
	waiting int
}

func localOf(w *workload.Workload) string { return quota.LocalName(w.Namespace, w.Queue) }

// joinLocal puts a workload that waits in the queue into its LocalQueue.
func (s *State) joinLocal(w *Waiting) {
	if !w.queue.quota.OrdersByUsage() {
		return
	}
	name := localOf(w.Workload)
	local := w.queue.locals[name]
	if local == nil {
		local = &localQueue{use: s.tree.UsageOf(name)}
		w.queue.locals[name] = local
	}
	local.waiting++
	w.local = local
}

// leaveLocal takes a workload out of its LocalQueue.
func (q *queue) leaveLocal(w *Waiting) {
	if w.local == nil {
		return
	}
	if w.local.waiting--; w.local.waiting == 0 {
		delete(q.locals, localOf(w.Workload))
	}
	w.local = nil
}

// byUse orders workloads of one queue by the use of their LocalQueues.
func byUse(a, b *Waiting) int {
	if a.local == nil || b.local == nil {
		return 0
	}
	return cmp.Compare(a.local.use, b.local.use)
}

// charge counts what a started gang uses for its ClusterQueue and its LocalQueue, and refund
// no longer.
func (g *Started) charge() {
	g.queue.quota.Allocate(g.charges)
	g.queue.quota.AllocateFor(localOf(g.Workload), g.charges)
}

// refund reverts charge.
func (g *Started) refund() {
	g.queue.quota.Release(g.charges)
	g.queue.quota.ReleaseFor(localOf(g.Workload), g.charges)
}
