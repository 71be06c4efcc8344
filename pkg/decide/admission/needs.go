package admission

import (
	"slices"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/spec/workload"
)

// need is something that a workload lacks: an amount of quota, or room for pods of one
// pod set. Victims must bring it; that is necessary, not sufficient.
type need struct {
	missing int64
	brings  []int64 // the most that each candidate can bring, whatever else is evicted
	most    []int64 // the largest of brings from each candidate on
}

// needsOf returns what the workload lacks while the candidates run.
func (p *preemption) needsOf(candidates []candidate) []need {
	needs := p.quotaNeeds(candidates)
	if set, missing := p.lacking(); set != nil {
		fleet := p.d.state.fleets[p.cluster]
		brings := fleet.Reliefs(set, len(candidates), func(i int) (*workload.Workload, []workload.Placement) {
			if candidates[i].Cluster != p.cluster {
				return nil, nil
			}
			return candidates[i].Workload, candidates[i].Placements
		})
		needs = append(needs, need{missing: missing, brings: brings})
	}
	for i := range needs {
		n := &needs[i]
		n.most = make([]int64, len(n.brings)+1)
		for c, brings := range slices.Backward(n.brings) {
			n.most[c] = max(n.most[c+1], brings)
		}
	}
	return needs
}

// insufficient reports whether counting alone shows that all candidates together do not
// bring what the workload lacks.
func (p *preemption) insufficient(a *candidateSet) bool {
	if a.needs == nil {
		a.needs = p.needsOf(a.candidates)
	}
	return slices.ContainsFunc(a.needs, func(n need) bool {
		sum := int64(0)
		for _, brings := range n.brings {
			sum += brings
		}
		return sum < n.missing
	})
}

// enoughTogether reports whether the workload has quota and places with all candidates
// gone; if not, no evictions help, unless that is unknown.
func (p *preemption) enoughTogether(candidates []candidate) bool {
	undo := p.d.state.savepoint()
	defer undo()
	for _, c := range candidates {
		p.remove(c.Started)
	}
	enough := p.fits(true) != nil
	p.hopeless = p.hopeless && !p.unknown
	return enough
}

// lacking returns a pod set that counting shows to have no room on the nodes, and how
// many of its pods lack it; nil when the proof is another one.
func (p *preemption) lacking() (*workload.PodSet, int64) {
	verdict, _ := p.d.solveSparing(p.payer, p.w, p.cluster, p.flavored.w)
	if verdict.Outcome != placement.DoesNotFit || verdict.Certificate.Proof != placement.Counted {
		return nil, 0
	}
	sets := p.flavored.w.PodSets
	i := slices.IndexFunc(sets, func(set workload.PodSet) bool { return set.Name == verdict.Certificate.PodSets[0] })
	return &sets[i], int64(sets[i].Count - verdict.Certificate.Room)
}

// quotaNeeds returns the amounts of quota that the workload lacks.
func (p *preemption) quotaNeeds(candidates []candidate) []need {
	var needs []need
	for _, asked := range p.charges {
		lacks := asked.Amount - p.w.queue.quota.Available(asked.FlavorResource)
		if asked.Flavor == "" || lacks <= 0 {
			continue
		}
		n := need{missing: lacks, brings: make([]int64, len(candidates))}
		for i, c := range candidates {
			for _, charge := range c.charges {
				if charge.FlavorResource == asked.FlavorResource {
					n.brings[i] += charge.Amount
				}
			}
		}
		needs = append(needs, n)
	}
	return needs
}

// floor returns a number of evictions below which the needs are not met.
func floor(needs []need) int {
	needed := 1
	for _, n := range needs {
		sorted := slices.Sorted(slices.Values(n.brings))
		sum, count := int64(0), 0
		for i := len(sorted) - 1; i >= 0 && sum < n.missing; i-- {
			sum += sorted[i]
			count++
		}
		needed = max(needed, count)
	}
	return needed
}
