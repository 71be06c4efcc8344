package admission

import (
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// Nodes that come for a ProvisioningRequest are free until its gang is admitted. Places that the
// gang can use are kept for it meanwhile, from gangs of its priority and below. Among gangs whose
// nodes have come the order decides.

// SettleProvisioned is for how long a gang with a request waits for its places on nodes that have
// come, and for how long they are kept for it: the news of the nodes and of the request come on
// different ways.
const SettleProvisioned = 5 * time.Minute

// keptPart is what a gang with a request has places for, and these places.
type keptPart struct {
	asker  *Waiting
	placed *workload.Workload
	places []workload.Placement
	until  time.Time
}

// keptUntil is until when places are kept for a gang that waits for nodes; zero for never. That
// begins when its request is provisioned, or when a node comes to the cluster that is younger than
// the request. A request that waits for its nodes keeps nothing.
func (s *State) keptUntil(o *Waiting) time.Time {
	a := o.Asked
	newest := s.newest[a.Cluster]
	switch {
	case a.Checks != nil || a.Placeholders:
		return time.Time{}
	case a.Ready:
		return a.ReadySince.Add(SettleProvisioned)
	case !a.Since.IsZero() && newest.After(a.Since):
		return newest.Add(SettleProvisioned)
	}
	return time.Time{}
}

// keepsFrom reports whether places are kept from the workload.
func (p *keptPart) keepsFrom(w *Waiting) bool {
	return p.asker.Workload.ID != w.Workload.ID && w.Workload.Priority <= p.asker.Workload.Priority
}

// keptFrom lists what is kept from a workload that starts at that time, in a cluster; empty is
// any.
func (d *decision) keptFrom(w *Waiting, cluster string, at time.Time) (parts []*keptPart) {
	for _, p := range d.keptParts {
		if (cluster == "" || p.asker.Asked.Cluster == cluster) && at.Before(p.until) && p.keepsFrom(w) {
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

// dropKept has what is kept found again: the gang waits no longer, or a workload from which
// nothing is kept has got places in the cluster.
func (d *decision) dropKept() { d.keptFound, d.keptParts = false, nil }

// noteTaken notes that a workload has got places in a cluster.
func (d *decision) noteTaken(w *Waiting, cluster string) {
	if slices.ContainsFunc(d.keptParts, func(p *keptPart) bool { return p.asker.Asked.Cluster == cluster && !p.keepsFrom(w) }) {
		d.dropKept()
	}
}

// retryWithoutKept has the class of a workload tried again when nothing is kept from it any more.
func (d *decision) retryWithoutKept(w *Waiting) {
	for _, p := range d.keptFrom(w, "", d.now) {
		w.class.sparing = true
		w.class.retryBy(p.until)
	}
}

// reasonKept is why a workload waits that fits, but on places that are kept.
func (p *keptPart) reasonKept(w *Waiting) *workload.Reason {
	o := p.asker.Workload
	return &workload.Reason{
		Kind: workload.ReasonBehindHead,
		Message: fmt.Sprintf("the workload fits in cluster %s only on places that are kept, for at most %s, for %s with priority %d, for which nodes have come there",
			p.asker.Asked.Cluster, SettleProvisioned, nameFor(w.Workload, o), o.Priority),
		Foreign: foreign(w.Workload, o),
	}
}
