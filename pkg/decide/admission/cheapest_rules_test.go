package admission_test

import (
	"slices"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
)

// bill is what evictions cost, the most important part first: the rank of the shares; what
// is lost of the own queue's gangs of priority 2, 1 and 0, then of the others' of priority
// 2, 1 and 0, each in GPU-seconds and pod-seconds; the number of gangs.
type bill [14]int64

func (r *rules) billOf(set []target) bill {
	b := bill{0: r.rank(set), 13: int64(len(set))}
	for _, t := range set {
		level := 2 - t.Workload.Priority
		if !t.own() {
			level += 3
		}
		b[1+2*level] += t.gpuSeconds
		b[2+2*level] += t.podSeconds
	}
	return b
}

// cheapest tries all sets.
func (s *siege) cheapest() (best bill, found bool) {
	r := s.rules()
	if !r.config.FairSharing.Enable {
		return r.cheapestOf(func(set []target) bool { return r.classical(r.orders(set)[0]) })
	}
	for _, second := range []bool{false, true} { // only for what the first cannot do
		best, found = r.cheapestOf(func(set []target) bool {
			return slices.ContainsFunc(r.orders(set), func(set []target) bool { return r.fair(set, second) })
		})
		if found {
			return best, true
		}
	}
	return best, found
}

// cheapestOf tries all sets that have no gang that can be spared.
func (r *rules) cheapestOf(permitted func([]target) bool) (best bill, found bool) {
	all := slices.DeleteFunc(slices.Clone(r.all), func(t target) bool { return !r.obeys(t) })
	setOf := func(mask int) (set []target) {
		for i, t := range all {
			if mask>>i&1 == 1 {
				set = append(set, t)
			}
		}
		return set
	}
	known := map[int]bool{}
	enough := func(mask int) bool {
		if _, ok := known[mask]; !ok {
			known[mask] = permitted(setOf(mask)) && r.starts(setOf(mask))
		}
		return known[mask]
	}
	spares := func(mask int) bool {
		for i := range all {
			if rest := mask &^ (1 << i); rest != 0 && rest != mask && enough(rest) {
				return true
			}
		}
		return false
	}
	for mask := 1; mask < 1<<len(all); mask++ {
		if cost := r.billOf(setOf(mask)); (!found || slices.Compare(cost[:], best[:]) < 0) && enough(mask) && !spares(mask) {
			best, found = cost, true
		}
	}
	return best, found
}

// starts reports whether the waiting gang starts without the set, when no gang may be
// evicted.
func (r *rules) starts(without []target) bool {
	calm := r.config
	calm.ClusterQueues = slices.Clone(calm.ClusterQueues)
	for i := range calm.ClusterQueues {
		calm.ClusterQueues[i].Preemption = nil
	}
	peace, _ := quota.New(calm)
	rest := slices.DeleteFunc(slices.Clone(r.running), func(g admission.Started) bool {
		return slices.ContainsFunc(without, func(t target) bool { return t.Workload.ID == g.Workload.ID })
	})
	return len(r.play(peace, rest).Admissions) == 1
}
