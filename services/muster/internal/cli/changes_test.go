package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/follow"
	"muster.dev/muster/services/internal/client/output"
)

// TestChangesBelowAList: over a stream that begins with the last event of each workload, a
// line comes only for what has changed since the list, and one for a workload that leaves the
// chosen phases; all have the columns of the list.
func TestChangesBelowAList(t *testing.T) {
	t.Parallel()
	one := func(name string, phase workload.Phase, message string) workload.Record {
		r := workload.Record{Workload: workload.Workload{ID: workload.ID(name), Name: name, Queue: "q", Namespace: "team", Kind: "RayJob"}, Phase: phase,
			Times: workload.Times{Submitted: time.Now().Add(-time.Hour)}}
		if message != "" {
			r.Reason = &workload.Reason{Kind: workload.ReasonFit, Message: message}
		}
		return r
	}
	var out strings.Builder
	all := []workload.Record{one("a-long-name", workload.Queued, "no room"), one("b", workload.Queued, ""), one("done", workload.Succeeded, "")}
	selected := picked{queue: "q", namespace: "team", phases: []workload.Phase{workload.Queued, workload.Running}}
	c, err := newChanges(&out, selected, output.Text, all, false)
	if err != nil {
		t.Fatal(err)
	}
	c.replayed = true
	list := out.String()
	for _, r := range []workload.Record{
		all[1], all[2], all[0], one("long-gone", workload.Failed, ""), one("refused", workload.Rejected, ""), // replayed
		one("b", workload.Running, ""), one("b", workload.Running, ""), one("b", workload.Succeeded, ""), one("b", workload.Succeeded, ""),
		one("new", workload.Queued, ""), one("done", workload.Succeeded, ""),
	} {
		if err := c.step(follow.Step{Record: r}); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	phaseAt := strings.Index(list, "PHASE")
	for line := range strings.Lines(strings.TrimPrefix(out.String(), list)) {
		name, _, _ := strings.Cut(line, " ")
		got = append(got, name+" "+strings.Fields(line[phaseAt:])[0])
	}
	if want := "[b running b succeeded new queued]"; fmt.Sprint(got) != want {
		t.Errorf("the changes are %v, want %s:\n%s", got, want, out.String())
	}
	if strings.Contains(list, "done") || !strings.Contains(list, "a-long-name") {
		t.Errorf("the list is\n%s", list)
	}
}
