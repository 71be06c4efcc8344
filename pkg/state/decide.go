package state

import (
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// Decide fires due timers, runs admission, and applies the plan: growth, evictions,
// admissions, wait reasons. It comes after all inputs of the same transaction. If it came
// between two of them, it might reserve a node that is full according to the second, and
// Postgres would refuse the commit.
func (s *State) Decide(now time.Time) {
	if !s.catchingUp { // the timers fire afterwards
		s.deadlines.fire(now)
	}
	if !s.admission.Pending(now) {
		s.admission.AdvancePastUsage(now)
		return
	}
	plan := admission.Decide(s.admission, now)
	for _, g := range plan.Growths { // before evictions, which may hit the same gang
		s.sizing.applyGrowth(s.live.Get(g.Workload), g, now)
	}
	for _, g := range plan.Shrinks {
		s.sizing.giveUp(s.live.Get(g.Workload), g, now)
	}
	for _, v := range plan.Evictions { // of no gang that is kept
		s.evictWithGrace(s.live.Get(v.Workload), &v.Reason, now)
	}
	for _, w := range plan.Withdrawals { // before others get their quota
		s.withdrawHeld(s.live.Get(w.Workload), w.Reason, now)
	}
	for _, a := range plan.Admissions {
		s.admit(s.live.Get(a.Workload), a, now)
	}
	for _, a := range plan.Asks { // their reasons are among the waits
		s.requestNodes(s.live.Get(a.Workload), a, now)
	}
	for _, c := range plan.Checks {
		s.askChecks(s.live.Get(c.Workload), c, now)
	}
	for _, w := range plan.Waits {
		if e := s.live.Get(w.Workload); e.Phase == workload.Queued {
			s.setWaitReason(e, w.Reason, now)
		} else {
			s.sizing.explainGrowth(e, w.Reason, now)
		}
	}
}

// ReportsLeft reports whether the last decision has left reasons to the next one, which can
// be made at once.
func (s *State) ReportsLeft() bool { return s.admission.ReportsLeft() }

func (s *State) admit(e *entry, a admission.Admission, now time.Time) {
	e.Cluster, e.Placements, e.Flavors, e.Holding = a.Cluster, a.Placements, a.Flavors, true
	if a.PodSets != nil {
		e.PodSets = a.PodSets
	}
	s.beginAttempt(e)
	s.useRequest(e)
	e.endRetries()
	delete(s.staleReasons, e.ID)
	s.updateReserved(e, 1)
	s.changed.reserved[e.ID] = e
	s.learnReturn(e, now)
	s.transition(e, workload.Admitted, nil, now)
	e.permitted = true // nothing is created of it yet
	s.emitCommand(e, event.Present, now)
}

// Tick schedules replacements for nodes that have not been ready for the given grace,
// stores the reasons that changed in amounts only, and notes which clusters are silent and which
// gangs are in them. The timers of workloads fire in Decide.
func (s *State) Tick(now time.Time, grace time.Duration) {
	s.grace = grace
	var overdue []admission.NodeKey
	for _, key := range slices.SortedFunc(maps.Keys(s.notReady), compareKeys) { // questions are numbered in this order
		n := s.nodes[key]
		if n.notReadySince.IsZero() { // known from the last term
			n.notReadySince = now
		}
		if !n.overdue && now.Sub(n.notReadySince) >= grace && s.inquiries.askWhetherNotReady(key, now) {
			n.overdue = true
			overdue = append(overdue, key)
		}
	}
	for _, key := range overdue {
		s.healing.scheduleReplacement(key, now)
	}
	for _, e := range s.staleReasons {
		s.changed.workloads[e.ID] = e
	}
	clear(s.staleReasons)
	s.checkRequests(now)
	s.retryTried(now)
	s.recheckQueues(now)
	s.inquiries.drop(now)
	s.leaveClusters(now)
	s.failOver(now)
	s.noteSilentClusters(now)
	s.noteStranded(now)
}
