package reconcile

import (
	"cmp"
	"slices"
	"sync"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// republisher has statuses published again that the bus may have lost. The workers publish
// them, so that no old status overtakes a new one of the same workload.
type republisher struct {
	workloads *workloads
	look      func(workload.ID)

	mu      sync.Mutex
	round   bus.Round
	rest    []workload.ID // of the present round
	all     int           // of the present round
	manager int64         // the latest epoch of queue-manager that asked
}

// publishMatching has the statuses of the wanted workloads published again.
func (r *republisher) publishMatching(wanted func(workload.ID) bool) {
	for _, id := range r.reported() {
		if wanted(id) {
			r.publishOne(id)
		}
	}
}

// publishNext has the next part of all statuses published again, so that a round of
// bus.RoundTakes publishes each once.
func (r *republisher) publishNext() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.rest) == 0 {
		r.rest = r.reported()
		r.all = len(r.rest)
	}
	n := min(r.round.Step(r.all), len(r.rest))
	for _, id := range r.rest[:n] {
		r.publishOne(id)
	}
	r.rest = r.rest[n:]
}

// reported lists the workloads that have a status, in order.
func (r *republisher) reported() []workload.ID {
	var ids []workload.ID
	for _, t := range r.workloads.all() {
		if _, known := t.last(); known && t.wanted() != nil {
			ids = append(ids, t.id)
		}
	}
	slices.SortFunc(ids, cmp.Compare[workload.ID])
	return ids
}

func (r *republisher) publishOne(id workload.ID) {
	if t := r.workloads.get(id); t != nil && t.markForRepublish() {
		r.look(id)
	}
}

// ask takes in a question of queue-manager: of a workload, which is looked at and
// answered; or of all, which reports whether another queue-manager leads than the
// one that asked last.
func (r *republisher) ask(q *event.ReportWanted) (another bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case q.Workload != "":
		if r.workloads.ask(q) {
			r.look(q.Workload)
		}
	case q.Node == "" && q.Epoch != r.manager:
		r.manager = q.Epoch
		r.round.Hasten()
		return true
	}
	return false
}
