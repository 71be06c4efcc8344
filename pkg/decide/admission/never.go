package admission

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
)

// A workload never fits when no node of any cluster where it may be offers so much to one
// of its pods, even when empty, when all nodes of each cluster together do not offer so much
// to all of them, or when its queue could not have so much if nothing were in use. That is a
// reason to wait like others, because nodes and quota change. It is looked at when a class
// is refused anyway, and kept until a node with other amounts, labels or taints may change
// it: what runs on nodes does not matter.

// offer is what the empty nodes of a cluster offer to a flavored signature.
type offer struct {
	lack  *placement.Lack // nil when the nodes have room for the gang, by count
	nodes []string        // that show it
}

// wordNever returns the reason of a refused class, of the kind ReasonNeverFits when no
// change of what runs could admit it.
func (d *decision) wordNever(w *Waiting, why *workload.Reason) *workload.Reason {
	if !hasAmounts(why) || why.Kind == workload.ReasonNeverFits {
		return why
	}
	lacks, is := d.state.neverFits(w)
	if !is {
		return why
	}
	never := *why
	never.Kind = workload.ReasonNeverFits
	if lacks != "" {
		never.Message = lacks + "; it waits until a node is added or changed. Now: " + why.Message
	}
	return &never
}

// neverFits reports whether no change of what runs could admit a waiting workload, and what
// the nodes lack; "" when quota alone forbids it.
func (s *State) neverFits(w *Waiting) (lacks string, never bool) {
	if s.shutOut(w) {
		return "", false
	}
	o := s.optionsOf(w.queue, w.signature.smallest())
	if o.cut || o.why == nil && len(o.assignments) == 0 {
		return "", false
	}
	if o.why != nil {
		return "", true
	}
	if o.impossible == nil {
		o.impossible = make([]bool, len(o.assignments))
		for i, a := range o.assignments {
			o.impossible[i] = w.queue.quota.ExceedsPotential(a.Charges)
		}
	}
	clusters := s.clustersFor(w)
	for i, flavored := range o.flavored {
		if o.impossible[i] {
			continue
		}
		offered := s.offering(clusters, o.assignments[i].Flavors)
		if len(clusters) > 0 && len(offered) == 0 {
			continue // no cluster offers it
		}
		if w.queue.quota.Provisioning(o.assignments[i].Flavors) != nil {
			return "", false // nodes are asked for
		}
		lack := s.lackOf(flavored, offered)
		if lack == nil {
			return "", false
		}
		if lacks == "" {
			lacks = lack.Sentence()
		}
	}
	return lacks, true
}

// noKind is the reason of a workload of whose kinds one lacks in each cluster that may
// otherwise take it; nil where a cluster may serve all, or when there is none yet.
func (s *State) noKind(w *Waiting) *workload.Reason {
	if len(s.served) == 0 || w.Grows {
		return nil
	}
	var lacking []workload.ObjectKind
	which := "no cluster serves"
	for _, cluster := range s.candidates(w) {
		kind := s.unserved(w, cluster)
		if _, selects := s.selects(w, cluster); !selects || !s.tree.Takes(cluster, w.queue.name) || !s.mayUse(w.queue, w.Workload.Namespace, cluster) || slices.Contains(w.beyond, cluster) ||
			s.fleets[cluster].Len() == 0 && (kind != "" || s.served[cluster] == nil) {
			which = "no cluster that takes the workload serves"
			continue
		}
		if kind == "" {
			return nil
		}
		if !slices.Contains(lacking, kind) && len(lacking) < mostBarred {
			lacking = append(lacking, kind)
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	names := make([]string, len(lacking))
	for i, kind := range lacking {
		names[i] = kind.String()
	}
	return &workload.Reason{
		Kind: workload.ReasonNeverFits, Kinds: lacking,
		Message: which + " the kind " + strings.Join(names, ", or ") + "; it waits until the definition of the kind is installed",
	}
}

// lackOf returns what no node of these clusters offers to the pods, in the words of the
// cluster that offers most; nil when a cluster offers enough, or has no nodes yet.
func (s *State) lackOf(flavored *flavoredSignature, clusters []string) *placement.Lack {
	var least *placement.Lack
	for _, cluster := range clusters {
		lack := s.offerOf(flavored, cluster).lack
		if lack == nil {
			return nil
		}
		if least == nil || nearerLack(lack, least) {
			least = lack
		}
	}
	return least
}

// nearerLack reports whether a lacks less than b: one that only all nodes together lack is
// nearer than one that each node lacks.
func nearerLack(a, b *placement.Lack) bool {
	return cmp.Or(cmp.Compare(a.Sum, b.Sum), cmp.Compare(a.Room, b.Room), cmp.Compare(a.Most, b.Most)) > 0
}

func (s *State) offerOf(flavored *flavoredSignature, cluster string) offer {
	known, ok := flavored.offers[cluster]
	if !ok && s.fleets[cluster].Len() > 0 {
		known.lack, known.nodes = s.fleets[cluster].Lacks(flavored.w.PodSets)
		if flavored.offers == nil {
			flavored.offers = map[string]offer{}
		}
		flavored.offers[cluster] = known
	}
	return known
}

// noteOffer notes that a node offers something else when empty than before.
func (s *State) noteOffer(key NodeKey, before capacity.Node, was bool) {
	now, is := s.fleets[key.Cluster].Node(key.Name)
	if was != is || is && !sameOffer(&before, &now) {
		s.events.reshaped = append(s.events.reshaped, key)
	}
}

func sameOffer(a, b *capacity.Node) bool {
	lasting := func(n *capacity.Node) []capacity.Taint {
		return slices.DeleteFunc(slices.Clone(n.Taints), func(t capacity.Taint) bool { return !placement.Lasting(t) })
	}
	return a.Allocatable.Equal(b.Allocatable) && maps.Equal(a.Labels, b.Labels) && slices.Equal(lasting(a), lasting(b))
}

// offersMayChange reports whether a reshaped node may change what never fits.
func (s *State) offersMayChange() bool {
	if len(s.events.reshaped) == 0 {
		return false
	}
	for _, flavored := range s.flavored {
		for _, key := range s.events.reshaped {
			if known, ok := flavored.offers[key.Cluster]; ok && s.mayChange(flavored, known, key) {
				return true
			}
		}
	}
	s.events.reshaped = nil
	return false
}

// recheckOffers reopens the classes that never fit and now may, or the reverse, because
// nodes offer something else than before.
func (d *decision) recheckOffers() {
	s := d.state
	if len(s.events.reshaped) == 0 {
		return
	}
	d.reoffered = map[*flavoredSignature]bool{}
	for _, flavored := range s.flavored {
		looked := map[string]bool{} // one look is of all nodes as they are now
		for _, key := range s.events.reshaped {
			old, known := flavored.offers[key.Cluster]
			d.reoffered[flavored] = d.reoffered[flavored] || !known || s.mayChange(flavored, old, key)
			if !known || looked[key.Cluster] || !s.mayChange(flavored, old, key) {
				continue
			}
			looked[key.Cluster] = true
			delete(flavored.offers, key.Cluster)
			if now := s.offerOf(flavored, key.Cluster); (now.lack == nil) == (old.lack == nil) {
				continue
			}
			for class := range flavored.blocked {
				s.reopen(class) // heaps order by first gangs, so the order of reopening does not matter
			}
		}
	}
}

// mayChange reports whether another shape of the node may change what is offered.
func (s *State) mayChange(flavored *flavoredSignature, known offer, reshaped NodeKey) bool {
	if known.lack == nil {
		return slices.Contains(known.nodes, reshaped.Name)
	}
	i := slices.IndexFunc(flavored.w.PodSets, func(set workload.PodSet) bool { return set.Name == known.lack.PodSet })
	return i < 0 || s.fleets[reshaped.Cluster].Len() == 0 || s.fleets[reshaped.Cluster].Offers(reshaped.Name, &flavored.w.PodSets[i].Template)
}
