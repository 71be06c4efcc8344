package estimate_test

import (
	"fmt"
	"testing"
	"time"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/whatif/estimate"
)

func TestStem(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"train-7b-20261124-3": "train-7b",
		"train-7b-x2v9k":      "train-7b",
		"train":               "train",
		"12345":               "12345",
		"eval.nightly_17":     "eval-nightly",
		"rayjob-a1b2c3":       "rayjob",
		"":                    "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := estimate.Stem(name); got != want {
				t.Errorf("the stem is %q, want %q", got, want)
			}
		})
	}
}

// TestHistory: what is most alike speaks first, and what is declared bounds it.
func TestHistory(t *testing.T) {
	t.Parallel()
	var h estimate.History
	by := func(w workload.Workload, submitter string) *workload.Workload {
		w.Submitter = submitter
		return &w
	}
	for i := range 5 {
		h.Learn(by(gang(fmt.Sprintf("train-%d", i), 4, time.Hour), "ann"), 10*time.Minute)
		h.Learn(by(gang(fmt.Sprintf("eval-%d", i), 1, time.Hour), "ann"), time.Duration(i+1)*time.Minute)
		h.Learn(by(gang(fmt.Sprintf("x-%d", i), 2, 0), "bob"), 40*time.Minute)
	}
	for name, c := range map[string]struct {
		of    *workload.Workload
		ran   time.Duration
		want  time.Duration
		known bool
	}{
		"the same again":                           {by(gang("train-9", 4, time.Hour), "ann"), 0, 10 * time.Minute, true},
		"another declared time, by part":           {by(gang("train-9", 4, 30*time.Minute), "ann"), 0, 5 * time.Minute, true},
		"the median":                               {by(gang("eval-9", 1, time.Hour), "ann"), 0, 3 * time.Minute, true},
		"of those that ran as long":                {by(gang("eval-9", 1, time.Hour), "ann"), 3 * time.Minute, 4 * time.Minute, true},
		"it outlived the like of it, by its queue": {by(gang("train-9", 4, time.Hour), "ann"), 30 * time.Minute, 40 * time.Minute, true},
		"nothing declared, by the size":            {by(gang("new", 2, 0), "eve"), 0, 40 * time.Minute, true},
		"what is declared bounds":                  {by(gang("x-9", 2, 20*time.Minute), "bob"), 0, 20 * time.Minute, true},
		"it outlived all":                          {by(gang("new", 2, 0), "eve"), 2 * time.Hour, 3 * time.Hour, true},
		"nothing known, but for the queue":         {by(gang("new", 3, 0), "eve"), 0, 10 * time.Minute, true},
		"it outlived what it declared":             {by(gang("train-9", 4, time.Hour), "ann"), 2 * time.Hour, 3 * time.Hour, true},
		"nothing known but what it asks of":        {&workload.Workload{Queue: "other", Life: workload.Life{RunTime: workload.Duration(time.Hour)}}, 0, time.Hour, true},
		"nothing known":                            {&workload.Workload{Queue: "other"}, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, known := h.Predict(c.of, c.ran); got != c.want || known != c.known {
				t.Errorf("predicted %s, %t; want %s, %t", got, known, c.want, c.known)
			}
		})
	}
}

// TestHistoryIsBounded: many names take the memory of the last ones.
func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	var h estimate.History
	w := gang("rare", 1, 0)
	w.Queue = "rare"
	h.Learn(&w, time.Minute)
	h.Learn(&w, time.Minute)
	for i := range 60_000 {
		other := gang(fmt.Sprintf("job%cx", rune('a'+i%26)), i, 0)
		other.Submitter = fmt.Sprint(i)
		h.Learn(&other, time.Hour)
	}
	if got, known := h.Predict(&w, 0); known {
		t.Errorf("predicted %s after 60,000 others, want it forgotten", got)
	}
}
