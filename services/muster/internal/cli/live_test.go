package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/internal/client/follow"
	"muster.dev/muster/services/internal/client/output"
)

// The phases of a table get a colour, and nothing else in it.
func TestPhasesAreColoured(t *testing.T) {
	t.Parallel()
	table := "NAME     PHASE     REASON\nä-run    running   Fit: queued\nwaits    queued\nfailed   failed (pods remain)\nends     cancelled\n"
	want := "NAME     PHASE     REASON\nä-run    \x1b[32mrunning\x1b[0m   Fit: queued\nwaits    \x1b[33mqueued\x1b[0m\nfailed   \x1b[31mfailed\x1b[0m (pods remain)\nends     cancelled\n"
	if got := colored(table); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := colored("NAME\nqueued\n"); got != "NAME\nqueued\n" {
		t.Errorf("a table without phases is %q", got)
	}
}

// What is no terminal gets neither colours nor a view that is drawn again.
func TestAFileIsNoTerminal(t *testing.T) {
	t.Parallel()
	if to := terminalOf(output.Safe(&bytes.Buffer{}, 0)); to != nil {
		t.Errorf("a buffer is %+v", to)
	}
}

// The view shows the last of the selected workloads as they are now, each once, within the
// rows and columns of the terminal. A name obeys no escape sequence.
func TestTheLiveViewShowsWorkloadsAsTheyAreNow(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	one := func(name string, phase workload.Phase) workload.Record {
		return workload.Record{Workload: workload.Workload{ID: workload.ID(name), Name: name, Queue: "q", Namespace: "ns"}, Phase: phase, Times: workload.Times{Submitted: now}}
	}
	to := &terminal{plain: true, size: func() (int, int) { return 30, 5 }}
	view := newLiveView(to, picked{phases: []workload.Phase{workload.Queued, workload.Running}}, output.Text)
	view.put(one("first", workload.Queued), one("second", workload.Queued), one("third", workload.Queued), one("evil\x1b[2J", workload.Queued))
	for _, s := range []follow.Step{
		{Record: one("third", workload.Running)}, {Record: one("evil\x1b[2J", workload.Queued)}, {Record: one("second", workload.Cancelled)},
		{Record: one("refused", workload.Rejected)}, {Record: one("fifth", workload.Queued)},
	} {
		if err := view.step(s); err != nil {
			t.Fatal(err)
		}
	}
	screen, err := view.screen(now)
	if err != nil {
		t.Fatal(err)
	}
	text, starts := strings.CutPrefix(screen, home)
	text, ends := strings.CutSuffix(text, clearLineEnd+"\n"+clearBelow)
	if !starts || !ends {
		t.Errorf("the screen is %q", screen)
	}
	var names []string
	for _, line := range strings.Split(text, clearLineEnd+"\n") {
		if len([]rune(line)) > 30 || strings.Contains(line, "\x1b") {
			t.Errorf("line %q is too long, or has an escape sequence", line)
		}
		names = append(names, strings.Fields(line)[0])
	}
	if want := `NAME third evil\u001b[2J fifth`; strings.Join(names, " ") != want {
		t.Errorf("shown are %q, want %q", strings.Join(names, " "), want)
	}
	to.plain, to.size = false, func() (int, int) { return 90, 5 }
	if screen, _ = view.screen(now); !strings.Contains(screen, colorOf(workload.Running)+"running"+noColor) {
		t.Errorf("without colours: %q", screen)
	}
}
