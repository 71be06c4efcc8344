package state

import (
	"testing"
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// The place of a pod of a wrapped Job that has succeeded goes to who waits for it, and the rest of
// the gang runs on; that it is gone is no loss.
func TestASucceededPodGivesItsPlaceBack(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"the pod", "the Job"} {
		t.Run("first is reported "+first, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, workload.Rules{}, 3)
			s.gang().Kind = workload.KindAppWrapper
			s.created(true)
			s.another("next")
			s.Flush()
			succeeds := func() {
				for name, pod := range s.pods {
					if pod.PodSet == "workers" {
						pod.Phase, pod.Ready = "Succeeded", false
						s.pods[name] = pod
						break
					}
				}
				s.observe()
			}
			if first == "the pod" {
				succeeds()
				s.sizes(1)
			} else {
				s.sizes(1)
				s.has(2)
				succeeds()
			}
			s.step(0)
			command := s.commanded()
			if command == nil || command.Yield == "" || command.PodSets[1].Count != 1 {
				t.Fatalf("commanded is %+v, want a worker less", command)
			}
			s.sizes(1, obeys(command))
			s.has(1)
			if next := s.live.Get("next"); next.Phase != workload.Admitted {
				t.Errorf("who waits for the place is %s", next.Phase)
			}
			s.step(10 * time.Hour)
			s.is(workload.Running, "")
		})
	}
}
