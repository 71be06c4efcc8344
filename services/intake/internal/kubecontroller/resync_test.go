package kubecontroller

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/workload"
)

// TestAResyncAsksForManyAtOnce: what was missed of 1,200 objects is known again after three
// questions. Where queue-manager does not answer those, each object asks by itself.
func TestAResyncAsksForManyAtOnce(t *testing.T) {
	t.Parallel()
	const objects = 1200
	for name, c := range map[string]struct {
		silent    bool
		questions int
	}{
		"answers":   {false, 3},
		"no answer": {true, 1 + objects},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newCrowd()
				w.silent = c.silent
				asked := 0
				w.run(t, func() {
					for i := range objects {
						w.add(fmt.Sprint("o-", i), workload.Queued, nil)
					}
					time.Sleep(time.Minute)
					w.mu.Lock()
					missed := *w.records[w.controller.ID("o-7")]
					missed.Phase = workload.Succeeded
					w.records[missed.ID], asked = &missed, w.questions
					w.mu.Unlock()
					w.controller.Resync(t.Context())
					time.Sleep(time.Minute)
				})
				if got := w.questions - asked; got != c.questions {
					t.Errorf("a resync of %d objects took %d questions, want %d", objects, got, c.questions)
				}
				missed := w.objects[Key{Resource: key.Resource, Namespace: "team", Name: "o-7"}]
				if got := missed.GetAnnotations()[kube.StateKey]; got != string(workload.Succeeded) {
					t.Errorf("the state of an object of which an event was missed is %q, want %q", got, workload.Succeeded)
				}
			})
		})
	}
}
