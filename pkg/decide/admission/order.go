package admission

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// How long a gang waits before nodes are kept clear for it, where its queue does not set it.
// In a Backfill queue it then goes to the front, too. In a BestEffortFIFO queue, whose
// users expect gangs that fit to pass, only a wait that is out of all proportion ends that.
const (
	defaultPatience    = time.Hour
	bestEffortPatience = 24 * time.Hour
)

// backfills reports whether heads of the queue get reservations from the first.
func (q *queue) backfills() bool { return q.quota.Strategy == quota.Backfill }

// patienceIsOver reports whether the workload has waited for too long. It is not known of
// one without a time of submission.
func (w *Waiting) patienceIsOver(now time.Time) bool {
	return !w.Since.IsZero() && !now.Before(w.patienceEnd())
}

// order returns how the queue chooses its head, and which gangs pass it first.
func (q *queue) order() string {
	if q.quota.Backfill == nil || q.quota.Backfill.Order == "" {
		return quota.Submission
	}
	return q.quota.Backfill.Order
}

// depth returns how many gangs of the queue, from the head, get reservations.
func (q *queue) depth() int {
	if !q.backfills() || q.quota.Backfill == nil {
		return 1
	}
	return max(1, q.quota.Backfill.Depth)
}

func (q *queue) patience() time.Duration {
	switch {
	case q.quota.Backfill != nil && q.quota.Backfill.PatienceSeconds > 0:
	case q.backfills():
		return defaultPatience
	default:
		return bestEffortPatience
	}
	return time.Duration(q.quota.Backfill.PatienceSeconds) * time.Second
}

// patienceEnd returns the time from which the workload goes before shorter ones, and
// nodes are kept clear for it.
func (w *Waiting) patienceEnd() time.Time {
	end := w.Since.Add(w.queue.patience())
	if policy := w.queue.quota.Backfill; policy != nil && policy.PatienceFactor > 0 && w.RunTime > 0 {
		seconds := min(policy.PatienceFactor*int64(w.RunTime/time.Second), longestPatience)
		end = end.Add(time.Duration(seconds) * time.Second)
	}
	return end
}

// longestPatience bounds what the factor adds to a patience, in seconds: a hundred years.
const longestPatience = 100 * 365 * 24 * 3600

// headOrder orders the waiting workloads of a queue: the first is its head.
func (q *queue) headOrder(a, b *Waiting) int {
	if by := byUse(a, b); by != 0 {
		return by
	}
	if q.backfills() && q.order() == quota.ShortestFirst {
		return byRunTime(a, b)
	}
	return before(a, b)
}

// backfillOrder orders the workloads that may pass the head.
func (q *queue) backfillOrder(a, b *Waiting) int {
	if by := byUse(a, b); by != 0 {
		return by
	}
	if q.backfills() && q.order() != quota.Submission {
		return byRunTime(a, b)
	}
	return before(a, b)
}

// before orders the waiting: priority, then submission.
func before(a, b *Waiting) int {
	return cmp.Or(cmp.Compare(b.Workload.Priority, a.Workload.Priority), cmp.Compare(a.Order, b.Order))
}

// comesBefore reports whether another workload must spare the places that are reserved for this one.
func (w *Waiting) comesBefore(other *Waiting) bool {
	if w.queue == other.queue {
		return other.queue.headOrder(w, other) < 0
	}
	return before(w, other) < 0
}

// byRunTime orders by priority; then come workloads whose patience is over, by
// submission, then the others by declared run time, and last those without one.
func byRunTime(a, b *Waiting) int {
	known := func(w *Waiting) int {
		if w.RunTime > 0 {
			return 0
		}
		return 1
	}
	if byPriority := cmp.Compare(b.Workload.Priority, a.Workload.Priority); byPriority != 0 {
		return byPriority
	}
	if a.impatient || b.impatient {
		if a.impatient != b.impatient {
			if a.impatient {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Order, b.Order)
	}
	return cmp.Or(cmp.Compare(known(a), known(b)), cmp.Compare(a.RunTime, b.RunTime), cmp.Compare(a.Order, b.Order))
}

// key returns the class of the workload. In a Backfill queue, and while nodes are reserved,
// gangs of one class also have equal run times.
func (w *Waiting) key() classKey {
	key := classKey{signature: w.signature, priority: w.Workload.Priority, beyond: strings.Join(w.beyond, "\n")}
	for _, flavors := range w.Tried {
		key.tried += textOf(flavors)
	}
	for _, t := range w.TriedClusters {
		key.triedIn += t.Cluster + textOf(t.Flavors)
	}
	if w.Grows {
		key.grows = w.Workload.ID
	}
	if w.queue.backfills() {
		key.runTime, key.impatient = w.RunTime, w.impatient
	}
	if w.Failures > 0 && w.queue.quota.ShowsPlaceholders() {
		key.failures = w.Failures
	}
	if w.queue.quota.Selector() != nil || len(w.beyond) > 0 {
		key.namespace = w.Workload.Namespace
	}
	if w.queue.quota.OrdersByUsage() {
		key.local = localOf(w.Workload)
	}
	if all := w.queue.quota.Reservations(); len(all) > 0 {
		key.runTime, key.reserved = w.RunTime, w.reservedFor(all)
	}
	return key
}

// textOf returns a text that is equal for equal flavors only: maps are written by their keys, in
// order.
func textOf(flavors []workload.PodSetFlavors) string { return fmt.Sprintf("%q\n", flavors) }

// reservedFor returns the reservations that are for the workload itself or its user, not
// for its queue, as a text.
func (w *Waiting) reservedFor(all []quota.Reservation) string {
	var names []string
	for i := range all {
		if r := &all[i]; r.ClusterQueue == "" && r.For(w.queue.name, w.Workload) {
			names = append(names, r.Name)
		}
	}
	return strings.Join(names, ",")
}

// trackPatience notes a workload of a ShortestFirst queue until its patience is over.
func (q *queue) trackPatience(w *Waiting) {
	if w.impatient || !q.backfills() || q.order() != quota.ShortestFirst {
		return
	}
	i, _ := slices.BinarySearchFunc(q.patient, w, func(a, b *Waiting) int {
		return cmp.Or(a.patienceEnd().Compare(b.patienceEnd()), cmp.Compare(a.Order, b.Order))
	})
	q.patient = slices.Insert(q.patient, i, w)
}
