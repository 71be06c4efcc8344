package admission

import (
	"cmp"
	"slices"
	"time"

	"muster.dev/muster/pkg/quota"
)

// defaultPatience is how long a gang of a Backfill queue waits before it stands
// at the front and nodes are drained for it, when its queue does not say.
const defaultPatience = time.Hour

// backfills reports whether the queue's head gets places in time.
func (q *queue) backfills() bool { return q.quota.Strategy == quota.Backfill }

// order is how the queue chooses its head and who passes it.
func (q *queue) order() string {
	if q.quota.Backfill == nil || q.quota.Backfill.Order == "" {
		return quota.Submission
	}
	return q.quota.Backfill.Order
}

func (q *queue) patience() time.Duration {
	if q.quota.Backfill == nil || q.quota.Backfill.PatienceSeconds == 0 {
		return defaultPatience
	}
	return time.Duration(q.quota.Backfill.PatienceSeconds) * time.Second
}

// patient is until when the workload has to wait for its turn by run time, and
// for nodes to be drained for it.
func (w *Waiting) patient() time.Time { return w.Since.Add(w.queue.patience()) }

// inLine orders the waiting of a queue: the first is its head.
func (q *queue) inLine(a, b *Waiting) int {
	if q.backfills() && q.order() == quota.ShortestFirst {
		return shortest(a, b)
	}
	return before(a, b)
}

// passing orders those who may pass a head.
func (q *queue) passing(a, b *Waiting) int {
	if q.backfills() && q.order() != quota.Submission {
		return shortest(a, b)
	}
	return before(a, b)
}

// shortest orders by priority, then those whose patience is over by submission,
// then by declared run time; who has not declared any comes last.
func shortest(a, b *Waiting) int {
	known := func(w *Waiting) int {
		if w.RunTime > 0 {
			return 0
		}
		return 1
	}
	if byPriority := cmp.Compare(b.Workload.Priority, a.Workload.Priority); byPriority != 0 {
		return byPriority
	}
	if a.aged || b.aged {
		if a.aged != b.aged {
			if a.aged {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Order, b.Order)
	}
	return cmp.Or(cmp.Compare(known(a), known(b)), cmp.Compare(a.RunTime, b.RunTime), cmp.Compare(a.Order, b.Order))
}

// keyOf is the bucket of a workload. Where run times matter, only those of equal
// run time are alike.
func (w *Waiting) key() bucketKey {
	key := bucketKey{shape: w.shape, priority: w.Workload.Priority}
	if w.Grows {
		key.grows = w.Workload.ID
	}
	if w.queue.backfills() {
		key.runTime, key.aged = w.RunTime, w.aged
	}
	return key
}

// watchAge notes a workload of a queue in which those come first whose patience
// is over.
func (q *queue) watchAge(w *Waiting) {
	if w.aged || !q.backfills() || q.order() != quota.ShortestFirst {
		return
	}
	i, _ := slices.BinarySearchFunc(q.young, w, func(a, b *Waiting) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Order, b.Order))
	})
	q.young = slices.Insert(q.young, i, w)
}

// age brings those to the front whose patience is over.
func (d *decision) age() {
	for _, q := range d.state.sorted {
		n := 0
		for ; n < len(q.young) && !d.now.Before(q.young[n].patient()); n++ {
			w := q.young[n]
			if w.bucket == nil || !d.state.waiting.Has(w) {
				continue // it does not wait any more, or will come back aged
			}
			d.state.fromBucket(w)
			w.aged = true
			d.state.toBucket(w)
		}
		q.young = slices.Delete(q.young, 0, n)
	}
}
