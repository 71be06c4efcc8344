package state

import (
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// What an administrator can mend ends no workload: it gives its places back and waits, with
// the words of the API server, until it is tried again. What can never work fails.
func TestWhatAnAdministratorCanMendWaits(t *testing.T) {
	t.Parallel()
	const words = "rayclusters.ray.io is forbidden: exceeded quota: count/rayclusters.ray.io=1"
	s := newStage(t, workload.Rules{}, 3)
	for attempt := 1; attempt <= 3; attempt++ {
		s.is(workload.Admitted, "")
		s.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: attempt, Refused: true, Mendable: true, Message: words}, s.now, s.now)
		s.step(0)
		s.is(workload.Queued, workload.ReasonBackoff)
		if e := s.gang(); e.Holding || e.Requeues != 0 || !strings.Contains(e.Reason.Message, words) {
			t.Fatalf("after attempt %d it holds places: %v, has %d faults, and waits because of %+v", attempt, e.Holding, e.Requeues, e.Reason)
		}
		for range 400 {
			if s.step(time.Second); s.gang().Phase != workload.Queued {
				break
			}
		}
	}
	s.is(workload.Admitted, "")
	s.Status(&event.GangStatus{Workload: gangID, Cluster: "c", Attempt: 4, Refused: true, Message: "spec: Invalid value"}, s.now, s.now)
	s.step(0)
	if e := s.live.Get(gangID); e != nil {
		t.Errorf("what can never work is %s", e.Phase)
	}
}
