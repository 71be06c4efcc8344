package admission

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/placement"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// settleAsked starts the workloads whose nodes have come. One whose nodes do not hold all
// pods waits on: the exact fit decides, not the answer to the request.
func (d *decision) settleAsked() {
	s := d.state
	if due := !s.askedAt.IsZero() && !d.now.Before(s.askedAt); !due && !s.events.any() && len(s.fresh) == 0 {
		return
	}
	s.askedAt = time.Time{}
	for _, w := range slices.Clone(s.asked) {
		if !w.Asked.Ready {
			continue
		}
		d.keepForAskers(w)
		s.releaseQuota(w)
		s.addToClass(w)
		asked := w.Asked
		why := d.startOnProvisioned(w)
		if why == nil {
			s.events.shownEnded = s.events.shownEnded || asked.Placeholders
			s.events.keptEnded = true
			continue
		}
		s.removeFromClass(w)
		s.reserveQuota(w)
		if w.lacks == nil || w.lacks.Message != why.Message {
			w.lacks = why
			d.wait(w, why)
			w.Reported = true
		}
	}
}

// startOnProvisioned admits a workload in the cluster of its request, by the flavors by
// which it asked; it returns why it cannot.
func (d *decision) startOnProvisioned(w *Waiting) *workload.Reason {
	s, o := d.state, d.state.optionsOf(w.queue, w.signature)
	i := slices.IndexFunc(o.assignments, func(a quota.Assignment) bool { return reflect.DeepEqual(a.Flavors, w.Asked.Flavors) })
	fleet := s.fleets[w.Asked.Cluster]
	switch {
	case i < 0:
		return w.notPlaced("its queue does not give it the flavors any more by which it asked")
	case fleet == nil:
		return w.notPlaced("cluster " + w.Asked.Cluster + " has reported no node")
	case s.barred(w, w.Asked.Cluster) != "":
		return w.notPlaced(s.barred(w, w.Asked.Cluster))
	case s.whyNotOffered(w.Asked.Cluster, w.Asked.Flavors) != "":
		return w.notPlaced(s.whyNotOffered(w.Asked.Cluster, w.Asked.Flavors))
	}
	a := quota.Assess{Assignment: &o.assignments[i], Mode: quota.Within, Level: w.queue.quota.BorrowingLevel(o.assignments[i].Charges)}
	if over := w.queue.quota.Over(a.Charges); over != nil {
		return over.Reason()
	}
	verdict, cut := d.solveSparing(w.queue, w, w.Asked.Cluster, o.flavored[i].w)
	if cut {
		s.settleAskedBy(d.allowedAt(w.queue))
		return w.notPlaced("its search for places is " + putOff)
	}
	if verdict.Outcome != placement.Fits {
		return d.lacksPlaces(w, o.flavored[i].w, verdict.Reason())
	}
	if why := d.topologyConflict(w, verdict.Placements); why != nil {
		return why
	}
	d.admit(w, a, o.flavored[i], w.Asked.Cluster, verdict.Placements)
	return nil
}

// lacksPlaces is why a workload has no places on the nodes that have come. It is tried again when
// places are kept from it no longer.
func (d *decision) lacksPlaces(w *Waiting, placed *workload.Workload, lacks *workload.Reason) *workload.Reason {
	cluster := w.Asked.Cluster
	parts := d.keptFrom(w, cluster, d.now)
	for _, p := range parts {
		d.state.settleAskedBy(p.until)
	}
	if len(parts) > 0 {
		fleet := d.state.fleets[cluster]
		savepoint := fleet.Begin()
		d.close(w, cluster, func(r *quota.Reservation) bool { return r.Conflicts(d.now, w.RunTime) })
		without, _ := d.solve(w.queue, fleet, placed)
		fleet.Rollback(savepoint)
		if without.Outcome == placement.Fits {
			first := parts[0].asker.Workload
			why := w.notPlaced(fmt.Sprintf("its places are kept for %s with priority %d, which is before it and for which nodes have come, too", nameFor(w.Workload, first), first.Priority))
			why.Foreign = foreign(w.Workload, first)
			return why
		}
	}
	why, nodes := *lacks, ""
	if w.Asked.Placeholders {
		nodes = "the nodes "
	}
	why.Message = w.soFar() + nodes + "do not hold all pods: " + why.Message
	return &why
}

// settleAskedBy has the workloads whose nodes have come tried again at that time, without any event.
func (s *State) settleAskedBy(at time.Time) {
	if s.askedAt.IsZero() || at.Before(s.askedAt) {
		s.askedAt = at
	}
}

func (w *Waiting) notPlaced(why string) *workload.Reason {
	return &workload.Reason{Kind: workload.ReasonProvisioning, Message: w.soFar() + why}
}

// soFar begins the reason of a workload that has no places yet.
func (w *Waiting) soFar() string {
	if w.Asked.Placeholders {
		return fmt.Sprintf("it is shown as placeholder pods in cluster %s, but ", w.Asked.Cluster)
	}
	return "the nodes that were asked for are reported to be there, but "
}
