package admission

import (
	"muster.dev/muster/pkg/placement"
	"muster.dev/muster/pkg/quota"
	"muster.dev/muster/pkg/workload"
)

// start admits the workload or has gangs evicted for it; it returns why neither
// can be.
//
// The assignments are tried in the order of the queue's fungibility. One that is
// within quota but has no nodes is passed over for the next: quota says what one
// may have, not what is there.
func (d *decision) start(w *Waiting) *workload.Reason {
	o := d.state.optionsOf(w.queue, w.shape)
	b := w.bucket
	var lacks *variant
	defer func() { b.lacks = lacks }()
	clusters := d.state.clustersFor(w)
	if w.Grows && len(clusters) == 0 {
		return &workload.Reason{Kind: workload.ReasonUnknown, Message: "the gang is being torn down"}
	}
	b.overs, b.preempts = nil, false
	if o.why != nil {
		return o.why
	}
	var noPlace, over *workload.Reason
	var rest []quota.Assess
	assessed := w.queue.quota.Assess(o.assignments)
	for _, a := range assessed {
		if why := d.state.unsuited(w, a); why != nil {
			over = why
			continue
		}
		v := o.variantOf(a)
		if a.Mode == quota.Within {
			cluster, placements, why := d.fit(w, v, clusters)
			if why == nil && d.bound(w) {
				cluster, placements, why = d.pass(w, v)
			}
			if why == nil {
				why = d.disobeyed(w, placements)
			}
			if why == nil {
				d.admit(w, a, cluster, placements)
				return nil
			}
			if lacks == nil {
				lacks = v
			}
			if noPlace == nil || nearer(*why, *noPlace) {
				noPlace = why
			}
		} else {
			b.overs = append(b.overs, a.Over.Charge)
			if over == nil {
				over = a.Over.Reason()
			}
		}
		switch {
		case a.Mode == quota.Impossible:
		case !w.queue.quota.StopsWhenPreempting():
			rest = append(rest, a)
		case d.preempt(w, a, v):
			return nil
		}
	}
	for _, a := range rest {
		if d.preempt(w, a, o.variantOf(a)) {
			return nil
		}
	}
	switch {
	case noPlace != nil:
		return noPlace
	case over != nil:
		return over
	}
	return &workload.Reason{Kind: workload.ReasonUnknown, Message: "it has no pods"}
}

// variantOf returns what is to be placed under the assignment.
func (o *options) variantOf(a quota.Assess) *variant {
	for i := range o.assignments {
		if &o.assignments[i] == a.Assignment {
			return o.variants[i]
		}
	}
	return nil
}

// fit looks for places on one cluster after the other, by name, and returns, when
// there are none, the reason of the cluster that lacks least. Clusters that are
// known to have none are not asked again.
func (d *decision) fit(w *Waiting, v *variant, clusters []string) (cluster string, placements []workload.Placement, why *workload.Reason) {
	why = &workload.Reason{Kind: workload.ReasonNoNodes, Message: "no cluster has reported any node"}
	for _, cluster := range clusters {
		fleet := d.state.fleets[cluster]
		if fleet.Len() == 0 {
			continue
		}
		verdict, known := v.verdicts[cluster]
		if !known {
			var cut bool
			verdict, cut = d.solve(w.queue, fleet, v.w)
			if verdict.Outcome == placement.Fits {
				return cluster, verdict.Placements, nil
			}
			if cut {
				why = w.bucket.putOff()
				continue
			}
			v.verdicts[cluster] = verdict
			fleet.Park(v.key, v.w, verdict)
		}
		if reason := verdict.Reason(); nearer(*reason, *why) {
			why = reason
		}
	}
	return "", nil, why
}

// nearer reports whether a gang with reason a is nearer to its start than with b.
func nearer(a, b workload.Reason) bool {
	if a.Shortage == nil || b.Shortage == nil {
		return b.Kind == workload.ReasonNoNodes || a.Kind == workload.ReasonUnknown
	}
	return a.Shortage.Unplaced < b.Shortage.Unplaced
}

func (d *decision) admit(w *Waiting, a quota.Assess, cluster string, placements []workload.Placement) {
	if w.Grows {
		d.grow(w, a, placements)
		return
	}
	s := d.state
	d.plan.Admissions = append(d.plan.Admissions, Admission{w.Workload.ID, cluster, placements, a.Flavors})
	s.fromBucket(w)
	s.Start(Started{
		Workload: w.Workload, Order: w.Order, Queue: w.queue.name,
		Cluster: cluster, Placements: placements, Flavors: a.Flavors, Admitted: d.now,
		RunTime: w.RunTime,
	})
	g := s.started[w.Workload.ID]
	d.noteShort(g, g.RunTime)
	d.noteTaken(w, cluster, placements)
	d.noteVictim(g)
	s.waiting.Delete(w.Workload.ID)
	s.unexpect(w)
	s.drop(w.shape)
	d.noteShare(a)
}
