package state

import (
	"fmt"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// podNews are the pods of a gang before and after an observation.
type podNews struct{ before, now []event.GangPod }

// evaluate runs after each observation of a started workload's pods. It also runs, with nil
// news, after each status, once the status has changed the phase. What a step rests on comes
// before it:
//
//  1. An exit code may end the attempt, and then nothing is replaced.
//  2. A gang that runs now can lose pods from now on; before it ran, a pod that went away
//     was no loss.
//  3. Losses come before sizes: a scale-down that ends forgets which losses it discounts.
//  4. Places come before sizes, too: the pods that were observed are on the places from
//     before a resize.
//  5. Misplaced pods and idleness are judged by the places and sizes that result.
//  6. The timer is set last, to the earliest of the deadlines that all of them left.
func (s *State) evaluate(e *entry, news *podNews, now time.Time) {
	if news != nil {
		s.checkExits(e, now)
		s.checkRunning(e, now)
		if e.Phase == workload.Running {
			s.healing.recordLosses(e, news.before, news.now, now)
			s.healing.trackHead(e, news.now, now)
			s.healing.checkReadiness(e, now)
		}
		s.healing.checkPlaces(e, now)
	}
	s.sizing.resize(e, now)
	if news != nil {
		s.explainMisplaced(e, now)
	}
	s.idling.checkIdle(e)
	s.setTimer(e)
}

// checkExits ends a workload of which a container has ended with a code after
// which it asks not to be tried again; also while it is being torn down for that.
func (s *State) checkExits(e *entry, now time.Time) {
	t := e.Life.Tolerance
	if t == nil || e.Phase.Final() || e.Phase == workload.Cancelling || e.Reason != nil && e.Reason.Kind == workload.ReasonExitCode {
		return
	}
	for _, pod := range s.gangs[gangKey{e.Cluster, e.ID}].pods {
		if pod.Attempt != e.Attempt || pod.ExitCode == 0 || t.RetriesAfter(pod.ExitCode) {
			continue
		}
		reason := &workload.Reason{
			Kind:    workload.ReasonExitCode,
			Message: fmt.Sprintf("a container of pod %s ended with exit code %d, which the workload does not retry", pod.Name, pod.ExitCode),
		}
		if e.Phase == workload.Evicting {
			e.Reason = reason
			s.emitChanged(e, now)
		} else {
			s.evictNow(e, reason, now)
		}
		return
	}
}

// checkRunning notes that all pods of a gang are ready. The submitter is not
// waited for: KubeRay creates it after the cluster is ready.
func (s *State) checkRunning(e *entry, now time.Time) {
	if e.Phase != workload.Admitted && e.Phase != workload.Dispatched {
		return
	}
	if ready, all := s.readiness(e); ready < all {
		return
	}
	s.transition(e, workload.Running, nil, now)
}
