package suite

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/test/suite/checker"
)

// until polls a condition that no event tells of.
func (w *world) until(t *testing.T, what string, met func() bool) {
	t.Helper()
	patience := patience
	if w.random != nil {
		patience = patienceMost
	}
	deadline := time.After(patience)
	for !met() {
		select {
		case <-time.After(lookEvery):
		case <-deadline:
			t.Fatalf("not within %s: %s; gangs: %s", patience, what, w.unfinished())
		}
	}
}

// unfinished lists what has not come to its end.
func (w *world) unfinished() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var lines []string
	for _, id := range slices.Sorted(maps.Keys(w.submitted)) {
		if g := w.submitted[id]; !g.phase.Final() {
			lines = append(lines, fmt.Sprintf("%s %s %q", g.name, id, g.phase))
		}
	}
	return strings.Join(lines, ", ")
}

// breach notes a broken promise; the caller holds mu.
func (w *world) breach(format string, args ...any) {
	w.breaches = append(w.breaches, fmt.Sprintf(format, args...))
}

// check proves at the end what the promises say, from Postgres, the streams and
// the cluster.
func (w *world) check(t *testing.T) {
	t.Helper()
	w.until(t, "nothing is left in Kubernetes", func() bool { return w.checker.NothingLeft(w.ctx) })
	found := w.verify()
	for _, each := range found {
		t.Error(each)
	}
	if len(found) == 0 {
		t.Logf("%d gangs: none lost, none twice", len(w.submitted))
	}
}

// verify has the checker prove everything, when all gangs are at their end, and
// returns what is wrong.
func (w *world) verify() []string {
	w.mu.Lock()
	var gangs []checker.Gang
	for id, g := range w.submitted {
		if !g.ended {
			gangs = append(gangs, checker.Gang{ID: string(id), Name: strings.TrimSpace(g.name + " " + string(g.kind)), Ends: g.kind.ends(), Unseen: w.unseen})
		}
	}
	w.mu.Unlock()
	found := w.checker.Verify(w.ctx, gangs, patience/3)
	w.mu.Lock()
	defer w.mu.Unlock()
	found = append(found, w.breaches...)
	w.breaches = nil
	if w.recorder != nil {
		violations := w.recorder.Report().Violations
		found = append(found, violations[min(w.violations, len(violations)):]...)
		w.violations = len(violations)
	}
	return found
}
