package state

import (
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// Checked lists the workloads that AdmissionChecks are asked about, by submission.
func (s *State) Checked() []workload.ID {
	entries := s.checkedInOrder()
	ids := make([]workload.ID, len(entries))
	for i, e := range entries {
		ids[i] = e.ID
	}
	return ids
}

// noteLostChange keeps for the term that the ledger has lost a change of a workload.
func (r *recovery) noteLostChange(id workload.ID) {
	if r.lostChanges == nil {
		r.lostChanges = map[workload.ID]bool{}
	}
	r.lostChanges[id] = true
}

// askChecksAgain puts workloads to their checks again that wait for answers, or of which the
// ledger has lost a change: what the checks answered may be lost with it. The number is
// another one, because by the last one they may have answered. Where nothing is known to be
// lost, only the same is published once more.
func (r *recovery) askChecksAgain(only []workload.ID, now time.Time) {
	about := r.checkedInOrder()
	if len(only) > 0 {
		about = about[:0]
		for _, id := range only {
			if e := r.checked[id]; e != nil {
				about = append(about, e)
			}
		}
	}
	for _, e := range about {
		switch {
		case r.frozen(e) || e.Phase != workload.Queued || r.removals.removing[e.ID]:
		case len(r.lostChanges) == 0:
			for i := range e.checks().Checks {
				r.emitCheck(e, &e.checks().Checks[i], nil, now)
			}
		case r.lostChanges[e.ID] || e.checks().Pending():
			r.withdrawRequest(e, now)
			r.withdrawChecks(e, "the database was restored to an older state: the workload is asked about again, by another number", now)
			r.emitChanged(e, now)
			r.enqueue(e)
		}
	}
}
