package kubecontroller

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/spec/workload"
)

// TestObjectsShowWhenTheyStart: an object that waits is marked with its estimate, and again only
// when that has moved far; one that has started says nothing any more.
func TestObjectsShowWhenTheyStart(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 0, 0, 0, time.UTC)
	k := &tracked{record: &workload.Record{Phase: workload.Queued}, starts: &workload.Estimate{P50: now.Add(10 * time.Hour), P90: now.Add(20 * time.Hour)}}
	const want = "2026-03-04T15:00Z, by 2026-03-05T01:00Z"
	if got := k.startsText("", now); got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	k.starts.P50 = k.starts.P50.Add(30 * time.Minute)
	if got := k.startsText(want, now); got != want {
		t.Errorf("after a small move it says %q, want %q still", got, want)
	}
	k.starts.P90 = k.starts.P90.Add(4 * time.Hour)
	if got, want := k.startsText(want, now), "2026-03-04T15:30Z, by 2026-03-05T05:00Z"; got != want {
		t.Errorf("after a large move it says %q, want %q", got, want)
	}
	for name, k := range map[string]*tracked{
		"unknown": {record: k.record, starts: &workload.Estimate{Unknown: "it is held"}},
		"started": {record: &workload.Record{Phase: workload.Admitted}, starts: k.starts},
		"gone":    {starts: k.starts},
	} {
		t.Run(name, func(t *testing.T) {
			if got := k.startsText(want, now); got != "" {
				t.Errorf("it says %q, want nothing", got)
			}
		})
	}
}

// TestAnEstimateCostsFewWrites: it comes with a mark of its own, and goes when the workload is
// admitted.
func TestAnEstimateCostsFewWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newCrowd()
		w.controller.options.Estimates = func(context.Context) (map[workload.ID]*workload.Estimate, error) {
			at := time.Now().Add(10 * time.Hour)
			return map[workload.ID]*workload.Estimate{w.controller.ID("one"): {P50: at, P90: at}}, nil
		}
		var shown []string
		w.run(t, func() {
			k := w.add("one", "", nil)
			time.Sleep(100 * time.Millisecond)
			w.becomes("one", workload.Queued, &workload.Reason{Kind: workload.ReasonFit, Message: "full"})
			time.Sleep(10 * time.Minute)
			shown = append(shown, w.Object(k).GetAnnotations()[kube.StartsKey])
			w.becomes("one", workload.Admitted, &workload.Reason{Kind: workload.ReasonStarting, Message: "soon"})
			time.Sleep(time.Minute)
			shown = append(shown, w.Object(k).GetAnnotations()[kube.StartsKey])
		})
		if shown[0] == "" || shown[1] != "" {
			t.Errorf("while it waits and after its admission it says %q, want a time and nothing", shown)
		}
		annotations := slices.DeleteFunc(slices.Clone(w.writes), func(write string) bool { return write[:5] == "event" })
		if len(annotations) != 3 {
			t.Errorf("%d writes of annotations, want 3 (waits, its estimate, admitted): %q", len(annotations), w.writes)
		}
	})
}
