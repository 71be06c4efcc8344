package state

import (
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// Decide fires due timers, runs admission, and applies the plan: growth, evictions,
// admissions, wait reasons. It follows all inputs of the same transaction: a node that
// is reserved between two inputs, for pods that lost theirs, might be full according to
// the second, and Postgres would refuse the commit.
func (m *State) Decide(now time.Time) {
	if !m.catchingUp { // the timers fire afterwards
		m.deadlines.fire(now)
	}
	if !m.admission.Pending(now) {
		return
	}
	plan := admission.Decide(m.admission, now)
	for _, g := range plan.Growths { // before evictions, which may hit the same gang
		m.sizing.applyGrowth(m.live.Get(g.Workload), g, now)
	}
	for _, v := range plan.Evictions { // of no gang that is kept
		m.evict(m.live.Get(v.Workload), &v.Reason, now)
	}
	for _, a := range plan.Admissions {
		m.admit(m.live.Get(a.Workload), a, now)
	}
	for _, w := range plan.Waits {
		if e := m.live.Get(w.Workload); e.Phase == workload.Queued {
			m.setWaitReason(e, w.Reason, now)
		} else {
			m.sizing.explainGrowth(e, w.Reason, now)
		}
	}
}

func (m *State) admit(e *entry, a admission.Admission, now time.Time) {
	e.Cluster, e.Placements, e.Flavors, e.Holding = a.Cluster, a.Placements, a.Flavors, true
	m.beginAttempt(e)
	delete(m.staleReasons, e.ID)
	m.updateReserved(e, 1)
	m.changed.reserved[e.ID] = e
	m.transition(e, workload.Admitted, nil, now)
	m.sendCommand(e, event.Present, now)
}

// Tick schedules replacements for nodes that have not been ready for the given grace,
// and stores the reasons that changed in amounts only. The timers of workloads fire in
// Decide.
func (m *State) Tick(now time.Time, grace time.Duration) {
	m.grace = grace
	var overdue []admission.NodeKey
	for key := range m.notReady {
		n := m.nodes[key]
		if n.notReadySince.IsZero() { // known from the last term
			n.notReadySince = now
		}
		if !n.overdue && now.Sub(n.notReadySince) >= grace && m.inquiries.confirmedNodeState(key, now) {
			n.overdue = true
			overdue = append(overdue, key)
		}
	}
	slices.SortFunc(overdue, compareKeys)
	for _, key := range overdue {
		m.healing.scheduleReplacement(key, now)
	}
	for _, e := range m.staleReasons {
		m.changed.workloads[e.ID] = e
	}
	clear(m.staleReasons)
	m.inquiries.drop(now)
}
