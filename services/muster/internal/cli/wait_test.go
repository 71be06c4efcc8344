package cli

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/exit"
	"muster.dev/muster/services/internal/client/follow"
)

// stepsOf has steps to come, and then none.
type stepsOf []follow.Step

func (s *stepsOf) Next(ctx context.Context) (follow.Step, error) {
	if len(*s) == 0 {
		<-ctx.Done()
		return follow.Step{}, ctx.Err()
	}
	next := (*s)[0]
	*s = (*s)[1:]
	return next, nil
}

// TestWhatWasRejectedWasNotSubmittedBefore: a submission after a rejected one of its id is not
// said to repeat it; one after an accepted one is.
func TestWhatWasRejectedWasNotSubmittedBefore(t *testing.T) {
	t.Parallel()
	for phase, repeats := range map[workload.Phase]bool{workload.Rejected: false, workload.Queued: true} {
		t.Run(string(phase), func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			queued := follow.Step{Record: workload.Record{Phase: workload.Queued, Reason: &workload.Reason{Kind: workload.ReasonFit, Message: "2 lack"}}}
			w := &waiting{out: &out, label: "rayjob/a", goal: follow.Queued, timeout: time.Minute, before: &follow.Step{Record: workload.Record{Phase: phase}}}
			if err := w.until(t.Context(), &stepsOf{queued}); err != nil {
				t.Fatal(err)
			}
			if warned := strings.Contains(out.String(), "was submitted before"); warned != repeats {
				t.Errorf("it prints %q; want that it was submitted before: %v", out.String(), repeats)
			}
		})
	}
}

// TestTheLifeOfAWorkloadIsNoAnswer: a workload with the same source and id starts while other
// content is submitted. Its steps do not accept that content.
func TestTheLifeOfAWorkloadIsNoAnswer(t *testing.T) {
	t.Parallel()
	at := func(p workload.Phase) follow.Step { return follow.Step{Record: workload.Record{Phase: p}} }
	refused := func(messageID string) follow.Step {
		step := at(workload.Rejected)
		step.MessageID, step.Record.Reason = messageID, &workload.Reason{Kind: workload.ReasonDuplicate, Message: "the id is taken"}
		return step
	}
	for name, c := range map[string]struct {
		steps stepsOf
		code  int
		want  string // what is printed
	}{
		"refused while it starts":        {stepsOf{at(workload.Dispatched), at(workload.Running), refused("ours")}, exit.Rejected, ""},
		"another one's is refused":       {stepsOf{refused("theirs"), at(workload.Admitted)}, exit.OK, "rayjob/a was submitted before with the same source and id\nrayjob/a admitted\n"},
		"the same content":               {stepsOf{at(workload.Admitted)}, exit.OK, "rayjob/a was submitted before with the same source and id\nrayjob/a admitted\n"},
		"the same content, as it starts": {stepsOf{at(workload.Dispatched), at(workload.Dispatched)}, exit.OK, "rayjob/a was submitted before with the same source and id\nrayjob/a dispatched\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			before := at(workload.Admitted)
			w := &waiting{out: &out, label: "rayjob/a", goal: follow.Queued, timeout: time.Minute, messageID: "ours", before: &before}
			err := w.until(t.Context(), &c.steps)
			if code := exit.Code(err); code != c.code {
				t.Errorf("it ends with %d (%v), want %d", code, err, c.code)
			}
			if c.want != "" && out.String() != c.want {
				t.Errorf("it prints\n%swant\n%s", out.String(), c.want)
			}
		})
	}
}

// TestTheFirstDecisionHasAPosition: the first reason to wait comes with the position in the
// queue, for which is asked once; where there is no answer, the line has none.
func TestTheFirstDecisionHasAPosition(t *testing.T) {
	t.Parallel()
	waits := func(message string) follow.Step {
		return follow.Step{Record: workload.Record{Phase: workload.Queued, Reason: &workload.Reason{Kind: workload.ReasonFit, Message: message}}}
	}
	for position, want := range map[int32]string{
		2: "rayjob/a queued\nrayjob/a queued, position 2: Fit: 2 lack\nrayjob/a queued: Fit: 1 lacks\nrayjob/a running\n",
		0: "rayjob/a queued\nrayjob/a queued: Fit: 2 lack\nrayjob/a queued: Fit: 1 lacks\nrayjob/a running\n",
	} {
		t.Run(fmt.Sprintf("position %d", position), func(t *testing.T) {
			var out strings.Builder
			asked := 0
			w := &waiting{out: &out, label: "rayjob/a", goal: follow.Running, timeout: time.Minute, position: func(context.Context) int32 {
				asked++
				return position
			}}
			steps := stepsOf{{Record: workload.Record{Phase: workload.Queued}}, waits("2 lack"), waits("1 lacks"), {Record: workload.Record{Phase: workload.Running}}}
			if err := w.until(t.Context(), &steps); err != nil {
				t.Fatal(err)
			}
			if out.String() != want || asked != 1 {
				t.Errorf("position %d: it asks %d times and prints\n%swant\n%s", position, asked, out.String(), want)
			}
		})
	}
}
