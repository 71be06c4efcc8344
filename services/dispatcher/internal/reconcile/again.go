package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/workload"
)

// askedMost bounds the questions that wait for an answer; who asks does so again.
const askedMost = 4096

// again is the present round of repeating everything; the lock is held.
type again struct {
	round   bus.Round
	rest    []workload.ID // of the present round
	all     int           // of the present round
	manager int64         // the latest epoch of queue-manager that asked
}

// Repeat has everything reported again: the bus may have lost it.
func (r *Reconciler) Repeat() { r.RepeatThose(func(workload.ID) bool { return true }) }

// RepeatThose has the statuses of some workloads reported again. The workers do
// it, so that no old status overtakes a new one of the same workload.
func (r *Reconciler) RepeatThose(wanted func(workload.ID) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range r.reportedIDs() {
		if wanted(id) {
			r.repeatOne(id)
		}
	}
}

// RepeatSome has a part of everything reported again, so that in a round of
// bus.RoundTakes all of it is.
func (r *Reconciler) RepeatSome() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.again.rest) == 0 {
		r.again.rest = r.reportedIDs()
		r.again.all = len(r.again.rest)
	}
	n := min(r.again.round.Step(r.again.all), len(r.again.rest))
	for _, id := range r.again.rest[:n] {
		r.repeatOne(id)
	}
	r.again.rest = r.again.rest[n:]
}

// reportedIDs lists the workloads of which something was reported; the lock is held.
func (r *Reconciler) reportedIDs() []workload.ID {
	ids := make([]workload.ID, 0, len(r.reported))
	for id := range r.reported {
		if r.desired[id] != nil {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, cmp.Compare[workload.ID])
	return ids
}

// repeatOne has a status reported again; the lock is held.
func (r *Reconciler) repeatOne(id workload.ID) {
	if _, told := r.reported[id]; told && r.desired[id] != nil {
		r.repeat[id] = true
		r.Look(id)
	}
}

// Ask takes in a question of queue-manager: of a workload, which is looked at and
// answered; or of all, which reports whether another queue-manager leads than the
// one that asked last.
func (r *Reconciler) Ask(q *event.ReportWanted) (another bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q.Workload == "" {
		if another = q.Node == "" && q.Epoch != r.again.manager; another {
			r.again.manager = q.Epoch
			r.again.round.Hasten()
		}
		return another
	}
	if command := r.desired[q.Workload]; command == nil || command.State == event.Forgotten || command.Cluster != q.Cluster || len(r.asked) >= askedMost {
		return false // nothing is known of it, and silence says so
	}
	r.asked[q.Workload] = q.Ask
	r.Look(q.Workload)
	return false
}

// answer reports what the look that has just ended knows of a workload, if that was
// asked for.
func (r *Reconciler) answer(ctx context.Context, id workload.ID) error {
	r.mu.Lock()
	ask, asked := r.asked[id]
	command, status := r.desired[id], r.reported[id]
	r.mu.Unlock()
	if !asked || command == nil || command.State == event.Forgotten {
		return nil
	}
	if status.Attempt != command.Attempt || status.Cluster != command.Cluster {
		status = event.GangStatus{Workload: id, Cluster: command.Cluster, Attempt: command.Attempt, Epoch: command.Epoch}
	}
	status.Answers = ask
	if err := r.report(ctx, status, 0); err != nil {
		return fmt.Errorf("answer question %s about workload %s: %w", ask, id, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked[id] == ask {
		delete(r.asked, id)
	}
	return nil
}
