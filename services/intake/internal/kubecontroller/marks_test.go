package kubecontroller

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// TestAnAdmittedObjectCostsOneEvent: of an object that is admitted at once, intake writes the
// event of its admission. The finalizer comes with its creation, the annotations with its
// release.
func TestAnAdmittedObjectCostsOneEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newCrowd()
		w.run(t, func() {
			k := w.add("one", "", nil)
			time.Sleep(100 * time.Millisecond)
			w.becomes("one", workload.Queued, &workload.Reason{Kind: workload.ReasonPending, Message: "soon"})
			time.Sleep(100 * time.Millisecond)
			w.becomes("one", workload.Admitted, nil)
			time.Sleep(100 * time.Millisecond)
			w.change(k, func(o *unstructured.Unstructured) { // its release
				o.SetAnnotations(map[string]string{kube.StateKey: kube.StateAdmitted, kube.ReasonKey: "", kube.SuspendedUIDKey: string(o.GetUID())})
				unstructured.RemoveNestedField(o.Object, "spec", "suspend")
			})
			for _, phase := range []workload.Phase{workload.Dispatched, workload.Running} {
				w.becomes("one", phase, nil)
				time.Sleep(time.Minute)
			}
		})
		if want := []string{"event one: MusterAdmitted"}; !slices.Equal(w.writes, want) {
			t.Errorf("writes are %q, want %q", w.writes, want)
		}
	})
}

// TestAnObjectThatStartsIsMarkedLate: a gang that is running after seconds, as its pods have
// started, costs no mark about its start; one that takes longer says why.
func TestAnObjectThatStartsIsMarkedLate(t *testing.T) {
	t.Parallel()
	starting := &workload.Reason{Kind: workload.ReasonStarting, Message: "1 of 2 pods is ready"}
	for name, c := range map[string]struct {
		takes time.Duration
		want  []string
	}{
		"running after four seconds": {4 * time.Second, []string{"event one: MusterAdmitted"}},
		"running after a minute": {time.Minute, []string{
			"annotations one: admitted 1 of 2 pods is ready", "event one: MusterAdmitted", "annotations one: admitted ",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newCrowd()
				w.run(t, func() {
					k := w.add("one", "", nil)
					time.Sleep(100 * time.Millisecond)
					w.becomes("one", workload.Admitted, nil)
					time.Sleep(100 * time.Millisecond)
					w.change(k, func(o *unstructured.Unstructured) { // its release
						o.SetAnnotations(map[string]string{kube.StateKey: kube.StateAdmitted, kube.ReasonKey: ""})
						unstructured.RemoveNestedField(o.Object, "spec", "suspend")
					})
					w.becomes("one", workload.Dispatched, starting)
					time.Sleep(c.takes)
					w.becomes("one", workload.Running, nil)
					time.Sleep(time.Minute)
				})
				if !slices.Equal(w.writes, c.want) {
					t.Errorf("writes are\n%q, want\n%q", w.writes, c.want)
				}
			})
		})
	}
}

// TestWhatHappensToAnObjectIsMarked: a reason to wait, and what goes wrong while it runs, are
// written on the object within seconds, with an event each.
func TestWhatHappensToAnObjectIsMarked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newCrowd()
		w.run(t, func() {
			k := w.add("one", workload.Queued, &workload.Reason{Kind: workload.ReasonFit, Message: "2 lack"})
			time.Sleep(2 * time.Second)
			w.becomes("one", workload.Queued, &workload.Reason{Kind: workload.ReasonNeverFits, Message: "no node offers so much"})
			time.Sleep(2 * time.Second)
			w.becomes("one", workload.Running, nil)
			w.change(k, func(o *unstructured.Unstructured) { // its release
				o.SetAnnotations(map[string]string{kube.StateKey: kube.StateAdmitted, kube.ReasonKey: ""})
				unstructured.RemoveNestedField(o.Object, "spec", "suspend")
			})
			time.Sleep(time.Second)
			w.becomes("one", workload.Running, &workload.Reason{Kind: workload.ReasonPodLost, Message: "a pod is lost"})
			time.Sleep(2 * time.Second)
			w.becomes("one", workload.Running, nil)
			time.Sleep(2 * time.Second)
			w.becomes("one", workload.Succeeded, nil)
			time.Sleep(time.Second)
		})
		want := []string{
			"annotations one: queued 2 lack", "event one: MusterQueued",
			"annotations one: queued no node offers so much", "event one: MusterQueued",
			"event one: MusterAdmitted",
			"annotations one: admitted a pod is lost", "event one: MusterRunning",
			"annotations one: admitted ",
			"annotations one: succeeded ",
		}
		if !slices.Equal(w.writes, want) {
			t.Errorf("writes are\n%q, want\n%q", w.writes, want)
		}
	})
}

// TestARefusedRequestIsNoReasonToWait: the object keeps the reason that it had.
func TestARefusedRequestIsNoReasonToWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newCrowd()
		w.run(t, func() {
			w.add("one", workload.Queued, &workload.Reason{Kind: workload.ReasonFit, Message: "2 lack"})
			time.Sleep(2 * time.Second)
			for _, refused := range []string{event.NotMoved, event.NotHeld, event.NotResumed, event.NotRequeued, event.NotRanked, event.NotSaved} {
				record := *w.records[w.controller.ID("one")]
				record.Reason = &workload.Reason{Kind: workload.ReasonQueue, Message: refused + "it may not"}
				w.controller.Changed(&event.WorkloadChanged{Record: record})
				time.Sleep(time.Minute)
			}
			time.Sleep(2 * time.Minute)
		})
		if want := []string{"annotations one: queued 2 lack", "event one: MusterQueued"}; !slices.Equal(w.writes, want) {
			t.Errorf("writes are %q, want %q", w.writes, want)
		}
	})
}

// TestObjectsThatWaitCostFewWrites: objects whose reason to wait changes every minute, which
// is twice as often as they may be marked, cost one write a minute each. Those of 10,000
// objects are 100 a second together, which is less.
func TestObjectsThatWaitCostFewWrites(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ objects, minutes, most int }{
		"each":     {100, 20, 100 * (20 + 2)},             // the first mark comes at once, with its event
		"together": {10_000, 5, 100*60*5 + 2*turnsAtOnce}, // in any minute less than one for each
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newCrowd()
				w.run(t, func() { w.waits(c.objects, c.minutes) })
				if len(w.writes) > c.most {
					t.Errorf("%d writes in %d minutes for %d objects, want %d at most", len(w.writes), c.minutes, c.objects, c.most)
				}
				marked := 0
				for _, object := range w.objects {
					if object.GetAnnotations()[kube.StateKey] == string(workload.Queued) {
						marked++
					}
				}
				if marked != c.objects {
					t.Errorf("%d of %d objects say that they wait", marked, c.objects)
				}
			})
		})
	}
}

// waits has objects wait, each minute for a reason of another kind.
func (w *crowd) waits(objects, minutes int) {
	kinds := []workload.ReasonKind{workload.ReasonFit, workload.ReasonQuota, workload.ReasonBehindHead}
	for minute := range minutes {
		reason := &workload.Reason{Kind: kinds[minute%len(kinds)], Message: fmt.Sprintf("%d lack", minute)}
		for i := range objects {
			if name := fmt.Sprint("o-", i); minute == 0 {
				w.add(name, workload.Queued, reason)
			} else {
				w.becomes(name, workload.Queued, reason)
			}
		}
		time.Sleep(time.Minute)
	}
}

// TestSubmissionsAndDeletionsGoBeforeMarks: while an API server takes a second for each mark
// of 1,000 objects that wait, another object is submitted and one is cancelled at once.
func TestSubmissionsAndDeletionsGoBeforeMarks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newCrowd()
		w.writeTakes = time.Second
		var began time.Time
		w.run(t, func() {
			var first Key
			for i := range 1000 {
				k := w.add(fmt.Sprint("o-", i), workload.Queued, &workload.Reason{Kind: workload.ReasonFit, Message: "1 lacks"})
				if i == 0 {
					first = k
				}
			}
			time.Sleep(10 * time.Second)
			began = time.Now()
			w.add("new", "", nil)
			w.change(first, func(o *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(o.Object, began.UTC().Format(time.RFC3339), "metadata", "deletionTimestamp")
			})
			time.Sleep(time.Second)
		})
		for what, at := range map[string]time.Time{"submitted": w.submitted["new"], "cancelled": w.cancelled["o-0"]} {
			if at.IsZero() || at.Sub(began) > 100*time.Millisecond {
				t.Errorf("the other object is %s at %v, %v after it was there", what, at, at.Sub(began))
			}
		}
	})
}

// TestMarksOfOneNamespaceDelayNoOther: while 10,000 objects of one namespace wait, an object
// of another one says within seconds that it waits.
func TestMarksOfOneNamespaceDelayNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newCrowd()
		waits := &workload.Reason{Kind: workload.ReasonFit, Message: "1 lacks"}
		var other Key
		w.run(t, func() {
			for i := range 10_000 {
				w.addIn("many", fmt.Sprint("o-", i), workload.Queued, waits)
			}
			time.Sleep(10 * time.Second)
			other = w.addIn("few", "one", workload.Queued, waits)
			time.Sleep(2 * time.Second)
		})
		if got := w.Object(other).GetAnnotations()[kube.StateKey]; got != string(workload.Queued) {
			t.Errorf("after two seconds the object of the other namespace is marked %q, want queued", got)
		}
	})
}
