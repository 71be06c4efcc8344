package kubecontroller

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster.dev/muster/pkg/kube"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// TestObjectsShowWhenTheyStart: an object that waits is marked with its estimate, and again only
// when that has moved far; one that has started says nothing any more.
func TestObjectsShowWhenTheyStart(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 0, 0, 0, time.UTC)
	k := &tracked{record: &workload.Record{Phase: workload.Queued}, standing: Standing{Starts: &workload.Estimate{P50: now.Add(10 * time.Hour), P90: now.Add(20 * time.Hour)}}}
	const want = "2026-03-04T15:00Z, by 2026-03-05T01:00Z"
	if got := k.startsText("", now); got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	k.standing.Starts.P50 = k.standing.Starts.P50.Add(30 * time.Minute)
	if got := k.startsText(want, now); got != want {
		t.Errorf("after a small move it says %q, want %q still", got, want)
	}
	k.standing.Starts.P90 = k.standing.Starts.P90.Add(4 * time.Hour)
	if got, want := k.startsText(want, now), "2026-03-04T15:30Z, by 2026-03-05T05:00Z"; got != want {
		t.Errorf("after a large move it says %q, want %q", got, want)
	}
	for name, c := range map[string]struct {
		k    *tracked
		want string
	}{
		"unknown":   {&tracked{record: k.record, standing: Standing{Starts: &workload.Estimate{Unknown: "it is held"}}}, "unknown"},
		"no answer": {&tracked{record: k.record}, ""},
		"started":   {&tracked{record: &workload.Record{Phase: workload.Admitted}, standing: k.standing}, ""},
		"gone":      {&tracked{standing: k.standing}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, present := range []string{"", want, "unknown"} {
				if got := c.k.startsText(present, now); got != c.want {
					t.Errorf("after %q it says %q, want %q", present, got, c.want)
				}
			}
		})
	}
	if got, want := k.startsText("unknown", now), "2026-03-04T15:30Z, by 2026-03-05T05:00Z"; got != want {
		t.Errorf("when a time is known again it says %q, want %q", got, want)
	}
}

// TestObjectsShowTheirPosition: the last ten positions are exact, those before to a tenth, and one
// that does not wait has none.
func TestObjectsShowTheirPosition(t *testing.T) {
	t.Parallel()
	waits := &workload.Record{Phase: workload.Queued}
	for name, c := range map[string]struct {
		record   *workload.Record
		position int
		present  string
		want     string
	}{
		"the first":               {waits, 7, "", "7"},
		"a step near the front":   {waits, 6, "7", "6"},
		"a step far back":         {waits, 990, "1000", "1000"},
		"many steps far back":     {waits, 800, "1000", "800"},
		"back, near the front":    {waits, 8, "7", "8"},
		"what is no number":       {waits, 800, "soon", "800"},
		"not known":               {waits, 0, "7", ""},
		"it is admitted":          {&workload.Record{Phase: workload.Admitted}, 1, "1", ""},
		"its record is not known": {nil, 1, "1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := &tracked{record: c.record, standing: Standing{Position: c.position}}
			if got := k.positionText(c.present); got != c.want {
				t.Errorf("it says %q, want %q", got, c.want)
			}
		})
	}
}

// TestAGangThatWaitsAgainHasNoOldStanding: where a gang stood before it was admitted says nothing
// about its next wait, which begins without a position and an estimate. A change within a wait
// keeps both.
func TestAGangThatWaitsAgainHasNoOldStanding(t *testing.T) {
	t.Parallel()
	at := func(phase workload.Phase, attempt int) *workload.Record {
		return &workload.Record{Workload: workload.Workload{ID: "one"}, Phase: phase, Attempt: attempt}
	}
	for name, c := range map[string]struct {
		was     *workload.Record
		changes []*workload.Record
		want    bool // it still has its position and estimate
	}{
		"after it ran":           {at(workload.Queued, 0), []*workload.Record{at(workload.Running, 1), at(workload.Queued, 1)}, false},
		"its start was not seen": {at(workload.Queued, 0), []*workload.Record{at(workload.Queued, 1)}, false},
		"another reason":         {at(workload.Queued, 1), []*workload.Record{at(workload.Queued, 1)}, true},
		"its record comes again": {nil, []*workload.Record{at(workload.Queued, 1)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Date(2026, 3, 4, 5, 0, 0, 0, time.UTC)
			k := &tracked{record: c.was, standing: Standing{Position: 3, Starts: &workload.Estimate{P50: now.Add(time.Hour), P90: now.Add(time.Hour)}}}
			w := newCrowd()
			w.controller.tracked["one"] = k
			for _, record := range c.changes {
				w.controller.Changed(&event.WorkloadChanged{Record: *record})
			}
			if position, starts := k.positionText(""), k.startsText("", now); (position != "") != c.want || (starts != "") != c.want {
				t.Errorf("it says position %q and start %q, want both: %t", position, starts, c.want)
			}
		})
	}
}

// TestAPositionCostsFewWrites: an object that advances by one place a minute from place 1,000 is
// written much less often, never twice within two minutes, and what it says is right to a tenth.
func TestAPositionCostsFewWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newCrowd()
		began := time.Now()
		position := func() int { return max(1, 1000-int(time.Since(began)/time.Minute)) }
		w.controller.options.Standings = func(context.Context) (map[workload.ID]Standing, error) {
			return map[workload.ID]Standing{w.controller.ID("one"): {Position: position()}}, nil
		}
		const minutes = 995
		w.run(t, func() {
			k := w.add("one", workload.Queued, &workload.Reason{Kind: workload.ReasonFit, Message: "full"})
			for minute := range minutes {
				time.Sleep(time.Minute)
				if minute < 3 {
					continue // the first mark has no position yet, and the next one comes later
				}
				shown, err := strconv.Atoi(w.Object(k).GetAnnotations()[kube.PositionKey])
				if now := position(); err != nil || max(shown-now, now-shown) > now/8+4 {
					t.Errorf("after %d minutes it says %d, %v; it is %d", minute+1, shown, err, now)
				}
			}
		})
		writes := slices.DeleteFunc(slices.Clone(w.writes), func(write string) bool { return strings.HasPrefix(write, "event") })
		if len(writes) > 70 {
			t.Errorf("%d writes in %d minutes, want 70 at most", len(writes), minutes)
		}
	})
}

// TestAnEstimateCostsFewWrites: it comes with a mark of its own together with the position, and
// both go when the workload is admitted.
func TestAnEstimateCostsFewWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newCrowd()
		w.controller.options.Standings = func(context.Context) (map[workload.ID]Standing, error) {
			at := time.Now().Add(10 * time.Hour)
			return map[workload.ID]Standing{w.controller.ID("one"): {Position: 3, Starts: &workload.Estimate{P50: at, P90: at}}}, nil
		}
		var shown, positions []string
		w.run(t, func() {
			k := w.add("one", "", nil)
			time.Sleep(100 * time.Millisecond)
			w.becomes("one", workload.Queued, &workload.Reason{Kind: workload.ReasonFit, Message: "full"})
			time.Sleep(10 * time.Minute)
			shown, positions = append(shown, w.Object(k).GetAnnotations()[kube.StartsKey]), append(positions, w.Object(k).GetAnnotations()[kube.PositionKey])
			w.becomes("one", workload.Admitted, &workload.Reason{Kind: workload.ReasonStarting, Message: "soon"})
			time.Sleep(time.Minute)
			shown, positions = append(shown, w.Object(k).GetAnnotations()[kube.StartsKey]), append(positions, w.Object(k).GetAnnotations()[kube.PositionKey])
		})
		if shown[0] == "" || shown[1] != "" {
			t.Errorf("while it waits and after its admission it says %q, want a time and nothing", shown)
		}
		if !slices.Equal(positions, []string{"3", ""}) {
			t.Errorf("its positions are %q, want 3 and nothing", positions)
		}
		annotations := slices.DeleteFunc(slices.Clone(w.writes), func(write string) bool { return write[:5] == "event" })
		if len(annotations) != 3 {
			t.Errorf("%d writes of annotations, want 3 (waits, its estimate, admitted): %q", len(annotations), w.writes)
		}
	})
}
