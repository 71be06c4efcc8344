package admission_test

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// target is one that may be evicted.
type target struct {
	admission.Started
	gpus                   int64
	gpuSeconds, podSeconds int64 // lost
}

func (t target) own() bool { return t.Workload.Queue == "a" }

// rules are what Kueue's documentation says of preemption (concepts/preemption and
// concepts/fair_sharing) for a flat cohort, one resource and equal weights, where shares
// are as what the queues use beyond their nominal quota.
type rules struct {
	*siege
	nominal, used map[string]int64
	asked         int64
	policy        quota.Preemption
	all           []target
}

func gpusOf(w *workload.Workload) int64 {
	return int64(w.PodSets[0].Count) * w.PodSets[0].Template.Requests["nvidia.com/gpu"]
}

func (s *siege) rules() *rules {
	r := &rules{siege: s, nominal: map[string]int64{}, used: map[string]int64{}, asked: gpusOf(s.waiting.Workload)}
	for _, q := range s.config.ClusterQueues {
		r.nominal[q.Name] = q.ResourceGroups[0].Flavors[0].Resources[0].Nominal
		if q.Name == "a" {
			r.policy = *q.Preemption
		}
	}
	for _, g := range s.running {
		r.used[g.Workload.Queue] += gpusOf(g.Workload)
		again := int64((lostOf(g) + g.Progress.Startup) / time.Second)
		r.all = append(r.all, target{g, gpusOf(g.Workload), gpusOf(g.Workload) * again, int64(g.Workload.Pods()) * again})
	}
	return r
}

// lostOf is the work that the eviction of a gang loses. A checkpoint counts where it is
// declared how often there is one, and then no more is lost than that.
func lostOf(g admission.Started) time.Duration {
	since, p := g.Admitted, g.Progress
	if p.Interval == 0 {
		return start.Sub(since)
	}
	if p.Checkpoint.After(since) && !p.Checkpoint.After(start) {
		since = p.Checkpoint
	}
	return min(start.Sub(since), p.Interval)
}

// free is what the cohort has left.
func (r *rules) free() (free int64) {
	for name, nominal := range r.nominal {
		free += nominal - r.used[name]
	}
	return free
}

// beyond is what a queue borrows; of the waiting gang's, with what it asks for.
func (r *rules) beyond(used map[string]int64, name string) int64 {
	if name == "a" {
		return max(0, used[name]+r.asked-r.nominal[name])
	}
	return max(0, used[name]-r.nominal[name])
}

func (r *rules) mayBorrowAndEvict() bool { return r.policy.BorrowWithinCohort != nil }

// obeys reports whether priorities permit the eviction.
func (r *rules) obeys(t target) bool {
	rule := r.policy.ReclaimWithinCohort
	if t.own() {
		rule = r.policy.WithinClusterQueue
	}
	lower := t.Workload.Priority < r.waiting.Workload.Priority
	newer := t.Workload.Priority == r.waiting.Workload.Priority && t.Order > r.waiting.Order
	return rule == quota.Any || rule == quota.LowerPriority && lower || rule == quota.LowerOrNewerEqualPriority && (lower || newer)
}

// classical reports whether the set may be evicted without fair sharing.
func (r *rules) classical(set []target) bool {
	lacks := r.asked > r.free()
	if lacks && r.asked > r.nominal["a"] && !r.mayBorrowAndEvict() {
		return false // what is more than nominal evicts none
	}
	after := maps.Clone(r.used)
	whileBorrowing := true
	for _, t := range set { // its queue must be beyond nominal when it goes
		name := t.Workload.Queue
		if !t.own() && after[name] <= r.nominal[name] {
			return false
		}
		after[name] -= t.gpus
		advantage := r.used["a"]+r.asked <= r.nominal["a"]
		low := r.mayBorrowAndEvict() && t.Workload.Priority < r.waiting.Workload.Priority && t.Workload.Priority <= 1
		whileBorrowing = whileBorrowing && (t.own() || advantage || low)
	}
	if whileBorrowing {
		return true
	}
	return (r.mayBorrowAndEvict() || r.used["a"] < r.nominal["a"]) && after["a"]+r.asked <= r.nominal["a"]
}

// fair reports whether the strategies of fair sharing, those that are tried, permit the
// evictions, one after the other.
func (r *rules) fair(set []target, second bool) bool {
	lacks := r.asked > r.free()
	reclaims := r.policy.ReclaimWithinCohort != quota.Never
	if lacks && r.asked > r.nominal["a"] && !r.mayBorrowAndEvict() && !reclaims {
		return false
	}
	after := maps.Clone(r.used)
	for _, t := range set {
		name := t.Workload.Queue
		if !t.own() {
			mine, before := r.beyond(after, "a"), r.beyond(after, name)
			final := max(0, after[name]-t.gpus-r.nominal[name])
			if before == 0 || mine > final && (!second || mine >= before) {
				return false
			}
		}
		after[name] -= t.gpus
	}
	return true
}

// rank is how far the queues of the evicted are, when each goes, from having the largest
// share of those that have others to evict.
func (r *rules) rank(set []target) int64 {
	if !r.config.FairSharing.Enable {
		return 0
	}
	used, worst := maps.Clone(r.used), int64(0)
	remaining := map[string]int{}
	for _, t := range r.all {
		if r.obeys(t) {
			remaining[t.Workload.Queue]++
		}
	}
	rankOf := func(name string) (rank int64) {
		for other, n := range remaining {
			larger := r.beyond(used, other) > r.beyond(used, name) || name == "a" && r.beyond(used, other) == r.beyond(used, name)
			if n > 0 && other != name && larger {
				rank++
			}
		}
		return rank
	}
	for left := r.orders(slices.Clone(set))[0]; len(left) > 0; { // whatever order the set has
		first := slices.MinFunc(left, func(a, b target) int { return cmp.Compare(rankOf(a.Workload.Queue), rankOf(b.Workload.Queue)) })
		worst = max(worst, rankOf(first.Workload.Queue))
		used[first.Workload.Queue] -= first.gpus
		remaining[first.Workload.Queue]--
		left = slices.DeleteFunc(left, func(t target) bool { return t.Workload.ID == first.Workload.ID })
	}
	return worst
}

// orders are the orders in which evictions are permitted: the gangs of the largest share,
// of the lowest priority and admitted last first, and those of the own queue last or first.
func (r *rules) orders(set []target) [][]target {
	offence := func(t target) (rank int) {
		for name := range r.nominal {
			if r.beyond(r.used, name) > r.beyond(r.used, t.Workload.Queue) {
				rank++
			}
		}
		return rank
	}
	slices.SortFunc(set, func(a, b target) int {
		return cmp.Or(cmp.Compare(offence(a), offence(b)), cmp.Compare(a.Workload.Priority, b.Workload.Priority), b.Admitted.Compare(a.Admitted), cmp.Compare(b.Order, a.Order))
	})
	var own, others []target
	for _, t := range set {
		if t.own() {
			own = append(own, t)
		} else {
			others = append(others, t)
		}
	}
	return [][]target{slices.Concat(others, own), slices.Concat(own, others)}
}
