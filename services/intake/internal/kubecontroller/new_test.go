package kubecontroller

import (
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/pkg/spec/workload"
)

// TestANewObjectIsSubmittedWithoutAQuestion: queue-manager is asked for the workloads of objects
// from before this process began, which it may have, and of those that were submitted already.
func TestANewObjectIsSubmittedWithoutAQuestion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		age       time.Duration // when the controller sees it first, an hour after its beginning
		questions int
	}{
		"it was created since":  {time.Second, 0},
		"it was created before": {2 * time.Hour, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &lossy{object: suspendedCluster()}
				play(t, l, time.Second, func(d *Controller) {
					time.Sleep(time.Hour)
					l.object.SetCreationTimestamp(metav1.NewTime(time.Now().Add(-c.age)))
					d.Enqueue(key)
				})
				if len(l.submissions) != 1 || l.questions != c.questions {
					t.Errorf("%d submissions and %d questions, want one and %d", len(l.submissions), l.questions, c.questions)
				}
			})
		})
	}
}

// TestASubmittedObjectIsAskedFor: without an answer to a submission queue-manager is asked before
// it is repeated, and again when all objects are looked at once more.
func TestASubmittedObjectIsAskedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &lossy{object: suspendedCluster()}
		play(t, l, time.Minute, func(d *Controller) {
			time.Sleep(time.Hour)
			l.object.SetCreationTimestamp(metav1.NewTime(time.Now()))
			d.Enqueue(key)
			time.Sleep(time.Minute)
			d.Resync(t.Context())
		})
		if len(l.submissions) != 1 || l.questions != 2 || l.record == nil || l.record.Phase != workload.Queued {
			t.Errorf("%d submissions, %d questions, and queue-manager has %+v; want one, two, and what waits", len(l.submissions), l.questions, l.record)
		}
	})
}

// TestASubmissionWithoutAnAcknowledgementIsCancelled: it may be stored all the same. When its object
// is gone its workload has to end.
func TestASubmissionWithoutAnAcknowledgementIsCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &lossy{object: suspendedCluster(), unanswered: 1}
		play(t, l, time.Minute, nil)
		if len(l.submissions) != 1 || l.record == nil || !l.record.CancelRequested {
			t.Errorf("%d submissions, %d cancellations, and queue-manager has %+v; want one of each", len(l.submissions), len(l.cancels), l.record)
		}
	})
}
