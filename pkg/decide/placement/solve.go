package placement

import (
	"cmp"
	"slices"

	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
)

// Budget is a number of steps for Solve that is enough for nearly every gang. A step is
// about fifty nanoseconds of work and allocates at most a few hundred bytes, so a spent
// budget is about ten milliseconds and tens of megabytes for any gang. Steps are
// counted instead of time, so that the same gang on the same fleet ends the same way on
// any machine and in every replay.
const Budget = 200_000

// countedFirst is the size from which a pod set is counted before it is packed.
const countedFirst = 32

// Solve searches for a node for each pod of the gang, in at most budget steps of
// exact search. It does not change the fleet.
func (f *Fleet) Solve(w *workload.Workload, budget int) Verdict {
	p := f.newProblem(w, budget)
	verdict := p.decide(w)
	verdict.Steps = budget - p.left
	return verdict
}

func (p *problem) decide(w *workload.Workload) Verdict {
	if len(p.kinds) == 0 {
		return Verdict{Outcome: Fits}
	}
	for i := range p.kinds { // packing many pods to see that there are too many takes longer than counting
		if p.kinds[i].count > countedFirst {
			if certificate := p.countAlone(i); certificate != nil {
				return Verdict{Outcome: DoesNotFit, Certificate: certificate}
			}
		}
	}
	var packed *packing
	var stuck *kind
	if p.packable() {
		if packed, stuck = p.pack(); stuck == nil {
			return Verdict{Outcome: Fits, Placements: p.placements(w, packed.places())}
		}
	}
	for i := range p.kinds {
		if certificate := p.countAlone(i); certificate != nil {
			return Verdict{Outcome: DoesNotFit, Certificate: certificate}
		}
	}
	if certificate := p.sumUp(packed, stuck); certificate != nil {
		return Verdict{Outcome: DoesNotFit, Certificate: certificate}
	}
	for i := range p.kinds {
		if len(p.kinds) == 1 || !p.ruled(i) {
			continue
		}
		if p.left <= 0 {
			return Verdict{Outcome: Unknown}
		}
		if found := p.newSearch([]int{i}).run(); found.outcome == DoesNotFit {
			return Verdict{Outcome: DoesNotFit, Certificate: p.exhausted([]int{i}, found, nil, nil)}
		}
	}
	all := make([]int, len(p.kinds))
	for i := range all {
		all[i] = i
	}
	switch found := p.newSearch(all).run(); found.outcome {
	case Fits:
		return Verdict{Outcome: Fits, Placements: p.placements(w, found.places)}
	case DoesNotFit:
		return Verdict{Outcome: DoesNotFit, Certificate: p.exhausted(all, found, packed, stuck)}
	}
	return Verdict{Outcome: Unknown}
}

// countAlone proves that a kind does not fit when the nodes have no room for it by
// resources and single nodes alone; else it returns nil.
func (p *problem) countAlone(i int) *Certificate {
	k, room := &p.kinds[i], 0
	for _, c := range p.fleet.classList {
		for _, g := range slices.Backward(c.groups) { // the emptiest first
			if room += k.on(g, k.count) * len(g.nodes); room >= k.count {
				return nil
			}
		}
	}
	return &Certificate{
		Proof: Counted, PodSets: []string{k.set.Name}, Room: room,
		Shortage: *p.shortage(i, k.count-room, nil),
	}
}

// sumUp proves that the gang does not fit when it requests more of a resource than is
// free on all nodes that take any pod requesting it; else it returns nil.
func (p *problem) sumUp(packed *packing, stuck *kind) *Certificate {
	asked, free := make(vector, len(p.fleet.columns.names)), make(vector, len(p.fleet.columns.names))
	for i := range p.kinds {
		for _, a := range p.kinds[i].asks {
			asked[a.column] = add(asked[a.column], multiply(a.amount, int64(p.kinds[i].count)))
		}
	}
	for _, c := range p.fleet.classList {
		for _, g := range c.groups {
			counted := make([]bool, len(free))
			for i := range p.kinds {
				if p.kinds[i].on(g, 1) == 0 {
					continue
				}
				for _, a := range p.kinds[i].asks {
					if !counted[a.column] {
						counted[a.column] = true
						free[a.column] = add(free[a.column], multiply(g.free.at(a.column), int64(len(g.nodes))))
					}
				}
			}
		}
	}
	for _, column := range p.fleet.columns.order {
		if asked[column] <= free[column] {
			continue
		}
		certificate := &Certificate{Proof: Summed, Resource: p.fleet.columns.names[column]}
		for i := range p.kinds {
			if p.kinds[i].asked(column) > 0 {
				certificate.PodSets = append(certificate.PodSets, p.kinds[i].set.Name)
			}
		}
		certificate.Shortage = *p.leftOver(packed, stuck)
		return certificate
	}
	return nil
}

// exhausted makes the certificate of an exact search.
func (p *problem) exhausted(kinds []int, found answer, packed *packing, stuck *kind) *Certificate {
	certificate := &Certificate{Proof: Searched}
	for _, i := range kinds {
		certificate.PodSets = append(certificate.PodSets, p.kinds[i].set.Name)
	}
	if len(kinds) == 1 {
		certificate.Shortage = *p.ruledOut(kinds[0], found.best)
	} else {
		certificate.Shortage = *p.leftOver(packed, stuck)
	}
	return certificate
}

// places returns the places that the packing found.
func (p *packing) places() []place {
	places := make([]place, 0, len(p.bins))
	for n, b := range p.bins {
		places = append(places, place{n, b.pods})
	}
	return places
}

// placements converts places for the caller, in order.
func (p *problem) placements(w *workload.Workload, places []place) []workload.Placement {
	var placements []workload.Placement
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.node.Name, b.node.Name) })
	for i := range p.kinds {
		for _, at := range places {
			if at.pods[i] == 0 {
				continue
			}
			placement := workload.Placement{PodSet: p.kinds[i].set.Name, Node: at.node.Name, Pods: at.pods[i]}
			if hostname := at.node.Labels[capacity.HostnameLabel]; hostname != at.node.Name {
				placement.Hostname = hostname
			}
			placements = append(placements, placement)
		}
	}
	return placements
}
