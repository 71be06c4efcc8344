package admission

import (
	"math"

	"muster.dev/muster/pkg/decide/quota"
)

// firstRanks are the first ranks of an order: all, none, or those of a higher priority and, of the
// same one, those of an earlier submission.
type firstRanks struct {
	all, none bool
	priority  int32
	order     int64
}

func (f firstRanks) has(r classRank) bool {
	if f.all || f.none {
		return f.all
	}
	return r.priority > f.priority || r.priority == f.priority && r.order < f.order
}

// fewer returns the smaller one of two.
func (f firstRanks) fewer(o firstRanks) firstRanks {
	switch {
	case f.none || o.all:
		return f
	case o.none || f.all:
		return o
	case f.priority > o.priority || f.priority == o.priority && f.order < o.order:
		return f
	}
	return o
}

// mayEvict returns the ranks of the gangs of the queue that one of its policies lets evict a gang,
// quota aside. It is the rule of Waiting.mayEvictByAnyPolicy: borrowWithinCohort lets evict no
// gang that reclaimWithinCohort does not.
func (q *queue) mayEvict(g *Started) firstRanks {
	p := q.quota.Preemption
	higher := firstRanks{priority: g.Workload.Priority, order: math.MinInt64}
	switch {
	case p == nil:
	case q == g.queue && p.WithinClusterQueue == quota.LowerOrNewerEqualPriority:
		return firstRanks{priority: g.Workload.Priority, order: g.Order}
	case q == g.queue && p.WithinClusterQueue == quota.LowerPriority:
		return higher
	case q != g.queue && p.ReclaimWithinCohort == quota.Any:
		return firstRanks{all: true}
	case q != g.queue && p.ReclaimWithinCohort == quota.LowerPriority:
		return higher
	}
	return firstRanks{none: true}
}
