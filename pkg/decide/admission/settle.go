package admission

import (
	"slices"

	"muster.dev/muster/pkg/decide/placement"
)

// settleNominations starts the workloads whose places have become free. If the victims
// are gone but the places are not free, the nomination waits for gangs of other
// nominations that are still torn down. If there are none either, as after the loss of
// a node, the nomination ends and the workload is tried like any other. While no cluster
// reports nothing can start anywhere, and the nomination stays.
func (d *decision) settleNominations() {
	s := d.state
	for _, n := range slices.Clone(s.nominations) {
		n.awaits = slices.DeleteFunc(n.awaits, s.gone)
		w := n.waiting
		flavors := n.assess.Flavors
		if !s.mayRunIn(w, n.cluster) || s.tree.NotOffered(n.cluster, flavors) != "" { // it was cordoned meanwhile, or is silent, or the gang that grows ends
			if s.noneReports() && slices.Contains(s.candidates(w), n.cluster) && s.excluded(w, n.cluster) == "" && s.tree.NotOffered(n.cluster, flavors) == "" {
				continue
			}
			s.withdraw(n)
			d.dropKept(n.cluster)
			s.addToClass(w)
			w.Nominated, w.Reported = false, false
			s.fresh = append(s.fresh, w)
			continue
		}
		overused := w.queue.quota.Overused(n.assess.Charges)
		if len(n.awaits) > 0 && (overused || !n.nodesFree(s)) {
			continue
		}
		if d.now.Before(n.retryAt) { // what the queue may search until then would be spent bit by bit
			s.repeatBy(n.retryAt)
			continue
		}
		d.keepForAskers(w) // beside its places, which are its own until now
		s.withdraw(n)
		s.addToClass(w)
		verdict, cut := d.solveSparing(w.queue, w, n.cluster, n.flavored.w)
		fits, waits := verdict.Outcome == placement.Fits && w.queue.quota.Fits(n.assess.Charges), len(n.awaits) > 0
		if !fits && !cut && !waits {
			waits, cut = d.extend(n)
		}
		switch {
		case fits:
			d.admit(w, n.assess, n.flavored, n.cluster, verdict.Placements)
		case cut: // it keeps what is reserved for it until it is known whether it has places
			n.retryAt = d.allowedAt(w.queue)
			s.repeatBy(n.retryAt)
			d.nominate(n)
		case waits:
			d.nominate(n)
		default: // it may be behind others, so no decision would report it
			d.dropKept(n.cluster)
			w.Nominated, w.Reported = false, false
			s.fresh = append(s.fresh, w)
		}
	}
}

// extend has a nomination wait for all gangs that are being torn down, and reports
// whether that is enough. cut: it is not known, because an allowance is used up. Without such gangs
// the search would be the one that there was.
func (d *decision) extend(n *nomination) (enough, cut bool) {
	p := &preemption{d: d, w: n.waiting, charges: n.assess.Charges, flavored: n.flavored, cluster: n.cluster, terminating: d.terminating(), payer: n.waiting.queue}
	found := p.search(nil)
	if found == nil {
		return false, p.short && len(p.terminating) > 0
	}
	n.awaits, n.places = p.terminating, found.places
	return true, false
}
