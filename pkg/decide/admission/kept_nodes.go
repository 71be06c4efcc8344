package admission

import (
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/workload"
)

// Nodes that come for a ProvisioningRequest are free until its gang is admitted. Places that the
// gang can use are kept for it meanwhile, from gangs of its priority and below. Among gangs whose
// nodes have come the order decides.

// SettleProvisioned is for how long a gang with a request waits for its places on nodes that have
// come, and for how long they are kept for it: the news of the nodes and of the request come on
// different ways.
const SettleProvisioned = 5 * time.Minute

// mostKept is for how long a node is kept at most before a request is provisioned: it may have come
// for another reason, and so may those after it.
const mostKept = 2 * SettleProvisioned

// keptPart is what a gang with a request has places for, and these places.
type keptPart struct {
	asker   *Waiting
	cluster string
	placed  *workload.Workload
	places  []workload.Placement
	until   time.Time // then other places may be kept for it, or none
}

// mostKeptSearches bounds how often a decision finds what is kept: each gang that takes a node of
// it has it found again. What was found last then counts until the end of the decision.
const mostKeptSearches = 16

// keepers are the gangs with requests for which a decision keeps places.
type keepers struct {
	// first is the first gang in order for which places may be kept; nil for none.
	first *Waiting
	known bool
	// found: keptParts has all that is kept. in are the clusters of which it has it. searches
	// counts how often it was looked for.
	found    bool
	in       map[string]bool
	searches int
}

// mayKeep reports whether places may be kept for a gang with a request: its nodes are said to be
// there, or its cluster has a node that is younger than the request.
func (s *State) mayKeep(o *Waiting, now time.Time) bool {
	a := o.Asked
	switch {
	case a.Checks != nil || a.Placeholders:
		return false
	case a.Ready:
		return now.Before(a.ReadySince.Add(SettleProvisioned))
	}
	newest := s.newest[a.Cluster]
	return !a.Since.IsZero() && newest.After(a.Since) && now.Before(newest.Add(SettleProvisioned))
}

// cameFor lists the nodes that may have come for a request that waits for them, and until when it
// is these; none when the youngest is too old. A node that is created later than now, by the clock
// of its API server, counts from then on.
func (s *State) cameFor(a *Asked, now time.Time) (nodes []string, until time.Time) {
	var oldest, newest time.Time
	nodes = s.fleets[a.Cluster].Where(func(n *capacity.Node) bool {
		at := n.Created
		if !at.After(a.Since) || at.After(now) || !now.Before(at.Add(mostKept)) {
			return false
		}
		if oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
		if at.After(newest) {
			newest = at
		}
		return true
	})
	until = newest.Add(SettleProvisioned)
	if len(nodes) == 0 || !now.Before(until) {
		return nil, time.Time{}
	}
	if end := oldest.Add(mostKept); end.Before(until) {
		until = end
	}
	return nodes, until
}

// keepsFrom reports whether places are kept from the workload.
func (p *keptPart) keepsFrom(w *Waiting) bool {
	switch o := p.asker; {
	case o.Workload.ID == w.Workload.ID:
		return false
	case w.Asked != nil && w.Asked.Checks == nil: // nodes have come for both
		return before(o, w) < 0
	default:
		return w.Workload.Priority <= o.Workload.Priority
	}
}

// isOn reports whether one of the places is on a node where places are kept.
func (p *keptPart) isOn(places []workload.Placement) bool {
	return slices.ContainsFunc(p.places, func(kept workload.Placement) bool {
		return slices.ContainsFunc(places, func(taken workload.Placement) bool { return taken.Node == kept.Node })
	})
}

// keptFrom lists what is kept from a workload that starts at that time, in a cluster.
func (d *decision) keptFrom(w *Waiting, cluster string, at time.Time) (parts []*keptPart) {
	for _, p := range d.keptParts {
		if p.cluster == cluster && at.Before(p.until) && p.keepsFrom(w) {
			parts = append(parts, p)
		}
	}
	return parts
}

// allocateKept allocates, within a what-if on a cluster, what is kept from the workload.
func (d *decision) allocateKept(w *Waiting, cluster string, at time.Time) {
	for _, p := range d.keptFrom(w, cluster, at) {
		d.state.fleets[cluster].Allocate(p.placed, p.places)
	}
}

// keptPartOf returns what is kept for a workload; nil for nothing.
func (d *decision) keptPartOf(o *Waiting) *keptPart {
	i := slices.IndexFunc(d.keptParts, func(p *keptPart) bool { return p.asker == o })
	if i < 0 {
		return nil
	}
	return d.keptParts[i]
}

// noteTaken notes that a workload has got places in a cluster. What is kept there is found again
// when it was kept for the workload, or when one from which it is not kept is on its nodes.
func (d *decision) noteTaken(w *Waiting, cluster string, places []workload.Placement) {
	if d.keptPartOf(w) != nil {
		d.endKept(w)
		return
	}
	if slices.ContainsFunc(d.keptParts, func(p *keptPart) bool { return p.cluster == cluster && !p.keepsFrom(w) && p.isOn(places) }) {
		d.dropKept(cluster)
	}
}

// endKept ends what is kept for a workload that waits for nodes no longer.
func (d *decision) endKept(o *Waiting) {
	if d.keptPartOf(o) == nil {
		return
	}
	d.keptParts = slices.DeleteFunc(d.keptParts, func(p *keptPart) bool { return p.asker == o })
	d.dropKept(o.Asked.Cluster)
}

// dropKept has what is kept in a cluster found again.
func (d *decision) dropKept(cluster string) {
	if d.keepers.searches >= mostKeptSearches {
		return
	}
	d.keepers.found = false
	delete(d.keepers.in, cluster)
	d.keptParts = slices.DeleteFunc(d.keptParts, func(p *keptPart) bool { return p.cluster == cluster })
}

// retryWithoutKept has the class of a workload tried again when something else is kept from it in
// the clusters where it may get places.
func (d *decision) retryWithoutKept(w *Waiting, clusters []string) {
	for _, cluster := range clusters {
		for _, p := range d.keptFrom(w, cluster, d.now) {
			w.class.spares()
			w.class.retryBy(p.until)
		}
	}
}

// reasonKept is why a workload waits that fits, but on places that are kept.
func (p *keptPart) reasonKept(w *Waiting) *workload.Reason {
	o := p.asker.Workload
	return &workload.Reason{
		Kind: workload.ReasonBehindHead,
		Message: fmt.Sprintf("the workload fits in cluster %s only on places that are kept for %s with priority %d, for which nodes have come there",
			p.cluster, nameFor(w.Workload, o), o.Priority),
		Foreign: foreign(w.Workload, o),
	}
}
