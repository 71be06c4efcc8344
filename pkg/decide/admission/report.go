package admission

import (
	"slices"

	"muster.dev/muster/pkg/spec/workload"
)

// reportOthers has the reasons reported again of the members behind the first whose reported one
// is wrong because kinds are served now, or no longer. What is stored of them is read: an
// estimate gives no start to a workload of a kind that no cluster serves. Of amounts in reasons
// the first alone tells. At the beginning of a term, when last is nil, that a reported reason says
// never or does not is all that is known of it.
func (d *decision) reportOthers(class *equivalenceClass, last, why *workload.Reason) {
	s, more := d.state, false
	for _, w := range class.members[1:] {
		if w.Reported && (last != nil || w.Never != (why.Kind == workload.ReasonNeverFits)) && !s.isUnsettled(w) {
			w.Reported, more = false, true
			s.unreported = append(s.unreported, w)
		}
	}
	if more {
		slices.SortStableFunc(s.unreported, before)
	}
}

// reportsOfDecision bounds the reasons of one decision for workloads that are new, or whose
// queue is held now or no longer: each is an event and two rows of one transaction, and a
// queue may have 100,000 that wait. The next decisions report the others.
const reportsOfDecision = 1000

// ReportsLeft reports whether reasons are left for the next decision, which needs no event.
func (s *State) ReportsLeft() bool { return len(s.unreported) > 0 }

// reportNew adds the reasons of workloads that were enqueued since the last decision,
// or whose nomination has ended.
func (d *decision) reportNew() {
	s := d.state
	if len(s.fresh) > 0 {
		for _, w := range s.fresh { // a term may begin with a million, with their reasons reported
			if !w.Reported && s.waiting.Has(w) {
				s.unreported = append(s.unreported, w)
			}
		}
		s.fresh = nil
		slices.SortStableFunc(s.unreported, before)
	}
	for reported := 0; len(s.unreported) > 0 && reported < reportsOfDecision; reported++ {
		w := s.unreported[0]
		s.unreported = s.unreported[1:]
		if !s.waiting.Has(w) {
			continue // it has left since
		}
		if !w.Reported && w.nomination(s) == nil && !s.isUnsettled(w) { // a nomination reports its reason itself
			d.wait(w, s.reason(w))
		}
		w.Reported = true
	}
}
