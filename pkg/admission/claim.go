package admission

import (
	"fmt"
	"slices"

	"muster.dev/muster/pkg/placement"
	"muster.dev/muster/pkg/quota"
	"muster.dev/muster/pkg/workload"
)

// claim holds the places and the quota of a waiting workload for which gangs are
// being torn down. They are taken from the moment of the decision, so nobody
// else gets what the victims free; where the victims still are, less than
// nothing is free.
type claim struct {
	waiting *Waiting
	assess  quota.Assess
	variant *variant
	cluster string
	places  []workload.Placement
	// leaving are the gangs whose end it waits for.
	leaving []*Started
}

func (w *Waiting) claimed(s *State) *claim {
	i := slices.IndexFunc(s.claims, func(c *claim) bool { return c.waiting == w })
	if i < 0 {
		return nil
	}
	return s.claims[i]
}

// hold makes a claim.
func (d *decision) hold(c *claim) {
	s, w := d.state, c.waiting
	s.fromBucket(w)
	s.unexpect(w)
	s.fleet(c.cluster).Take(w.Workload, c.places)
	w.queue.quota.Use(c.assess.Charges)
	w.queue.claims++
	i, _ := slices.BinarySearchFunc(s.claims, c, func(a, b *claim) int { return before(a.waiting, b.waiting) })
	s.claims = slices.Insert(s.claims, i, c)
	d.noteTaken(w, c.cluster, c.places)
	d.noteShare(c.assess)
}

// giveUp ends a claim and gives back what it held.
func (s *State) giveUp(c *claim) {
	s.claims = slices.DeleteFunc(s.claims, func(other *claim) bool { return other == c })
	c.waiting.queue.claims--
	s.expect(c.waiting)
	s.giveBack(c.waiting.queue, c.cluster, c.waiting.Workload, c.places, c.assess.Charges)
}

func (c *claim) reason() *workload.Reason {
	cause := &workload.PreemptionCause{}
	for _, g := range c.leaving {
		cause.Victims = append(cause.Victims, g.Workload.ID)
	}
	who, frees := fmt.Sprintf("%d workloads are", len(c.leaving)), "they free"
	if len(c.leaving) == 1 {
		who, frees = nameFor(c.waiting.Workload, c.leaving[0].Workload)+" is", "it frees"
	}
	return &workload.Reason{
		Kind:       workload.ReasonWaitingForEviction,
		Message:    fmt.Sprintf("%s being torn down; what %s is held for it", who, frees),
		Preemption: cause, Foreign: foreign(c.waiting.Workload, workloadsOf(c.leaving)...),
	}
}

// settleClaims starts those whose places have become free. When its victims are
// gone, but others have taken what they freed for what their own victims still
// have, a claim waits for those. When nobody is left to wait for and the places
// are not there, as after the loss of a node, the claim ends and the workload is
// looked at like any other.
func (d *decision) settleClaims() {
	s := d.state
	for _, c := range slices.Clone(s.claims) {
		c.leaving = slices.DeleteFunc(c.leaving, func(g *Started) bool { return s.started[g.Workload.ID] != g })
		w := c.waiting
		overused := w.queue.quota.Overused(c.assess.Charges)
		if len(c.leaving) > 0 && (overused || !c.free(s)) {
			continue
		}
		s.giveUp(c)
		s.toBucket(w)
		if w.Grows && len(s.clustersFor(w)) == 0 {
			continue // the gang is being torn down itself
		}
		verdict, _ := d.solve(w.queue, s.fleet(c.cluster), c.variant.w)
		switch {
		case verdict.Outcome == placement.Fits && w.queue.quota.Fits(c.assess.Charges):
			d.admit(w, c.assess, c.cluster, verdict.Placements)
		case len(c.leaving) > 0 || d.lean(c):
			d.hold(c)
		}
	}
}

// lean has a claim wait for all gangs that are being torn down, if that is enough
// for it.
func (d *decision) lean(c *claim) bool {
	p := &preemption{d: d, w: c.waiting, charges: c.assess.Charges, variant: c.variant, cluster: c.cluster, going: d.going()}
	found := p.search(nil)
	if found == nil {
		return false
	}
	c.leaving, c.places = p.going, found.places
	return true
}

// free reports whether nothing is over-committed on the nodes of the claim.
func (c *claim) free(s *State) bool {
	fleet := s.fleet(c.cluster)
	for _, p := range c.places {
		free, there := fleet.Free(p.Node)
		if !there {
			return false
		}
		for _, set := range c.variant.w.PodSets {
			if set.Name != p.PodSet {
				continue
			}
			for name, asked := range set.Template.Requests {
				if asked > 0 && free[name] < 0 {
					return false
				}
			}
		}
	}
	return true
}
