package kubecontroller

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"muster.dev/muster/pkg/spec/workload"
)

// An object that loses its queue label is cancelled, and then has no finalizer of Muster any more:
// its user can delete it. Of an object that is gone, or that another one has the name of, or that has a
// label again, nothing is written.
func TestAnObjectWithoutItsLabelIsLetGo(t *testing.T) {
	t.Parallel()
	object := func(change func(*unstructured.Unstructured)) *unstructured.Unstructured {
		there := suspendedCluster()
		there.SetUID("one")
		change(there)
		return there
	}
	for name, test := range map[string]struct {
		there *unstructured.Unstructured
		want  bool
	}{
		"without a label":     {object(func(o *unstructured.Unstructured) { o.SetLabels(nil) }), true},
		"without a finalizer": {object(func(o *unstructured.Unstructured) { o.SetLabels(nil); o.SetFinalizers(nil) }), false},
		"of another object":   {object(func(o *unstructured.Unstructured) { o.SetLabels(nil); o.SetUID("two") }), false},
		"with a label":        {object(func(*unstructured.Unstructured) {}), false},
		"gone":                {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newCrowd()
				w.run(t, func() {
					k := w.add("one", workload.Queued, nil)
					time.Sleep(time.Minute)
					w.leave(k, test.there)
					time.Sleep(time.Second)
					if slices.Contains(w.writes, "finalizer one: false") {
						t.Error("the finalizer is removed before queue-manager has confirmed the cancellation")
					}
					w.becomes("one", workload.Cancelled, nil)
					time.Sleep(time.Minute)
				})
				if w.cancelled["one"].IsZero() {
					t.Error("the workload is not cancelled")
				}
				if got := slices.Contains(w.writes, "finalizer one: false"); got != test.want {
					t.Errorf("the finalizer is removed: %t, want %t; writes are %q", got, test.want, w.writes)
				}
				if w.controller.Tracks(w.controller.ID("one")) {
					t.Error("the workload is tracked for ever")
				}
			})
		})
	}
}

// An object whose finalizer the controller has removed is gone: it is not looked for.
func TestADeletedObjectIsNotLookedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newCrowd()
		w.run(t, func() {
			k := w.add("one", workload.Cancelled, nil)
			time.Sleep(time.Minute)
			w.change(k, func(o *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(o.Object, "2026-01-01T00:00:00Z", "metadata", "deletionTimestamp") // a new field
			})
			time.Sleep(time.Minute)
			w.leave(k, nil)
			time.Sleep(time.Minute)
		})
		if !slices.Contains(w.writes, "finalizer one: false") || w.looks > 0 {
			t.Errorf("%d looks for the object; writes are %q", w.looks, w.writes)
		}
	})
}
