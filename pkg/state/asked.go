package state

import (
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// Overtaken reports whether a later request of the same kind was taken in for the workload.
// The request is then done with; it may have been taken in, too, before that. A request that
// is not overtaken is noted with the workload, so that this outlives the leader.
func (s *State) Overtaken(r event.Request, at workload.AskedAt) bool {
	var submitter string
	var of func(*workload.Asked) *workload.AskedAt
	switch r := r.(type) {
	case *event.WorkloadHold:
		submitter, of = r.Submitter, func(a *workload.Asked) *workload.AskedAt { return &a.Hold }
	case *event.WorkloadPriority:
		of = func(a *workload.Asked) *workload.AskedAt { return &a.Priority }
	case *event.WorkloadMove:
		submitter, of = r.Submitter, func(a *workload.Asked) *workload.AskedAt { return &a.Move }
	case *event.WorkloadRequeue:
		submitter, of = r.Submitter, func(a *workload.Asked) *workload.AskedAt { return &a.Requeue }
	case *event.WorkloadRelease:
		of = func(a *workload.Asked) *workload.AskedAt { return &a.Release }
	default: // a repeated cancellation does nothing
		return false
	}
	e, _ := s.asked(r.About(), submitter)
	if e == nil || at == (workload.AskedAt{}) {
		return false
	}
	if h, is := r.(*event.WorkloadHold); is && h.Submitter != "" && h.Resume && (e.Hold == nil || !e.Hold.Own) {
		return false // it is refused, and overtakes nothing
	}
	asked := s.lastAsked[e.ID]
	last := of(&asked)
	if !at.Follows(*last) {
		return true
	}
	*last = at
	s.lastAsked[e.ID] = asked
	s.changed.workloads[e.ID], s.changed.asked[e.ID] = e, true
	return false
}
