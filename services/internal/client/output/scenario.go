package output

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/whatif/scenario"
)

// Played is the outcome of a scenario file.
type Played struct {
	File string `json:"file"`
	scenario.Outcome
}

// Scenarios prints outcomes: for programs all of them, one alone as an object;
// for people a line for each scenario and one for each difference, with every
// step when verbose.
func Scenarios(w io.Writer, format Format, played []Played, verbose bool) error {
	if format.Data() {
		if len(played) == 1 {
			return Print(w, format, played[0], nil)
		}
		return Print(w, format, played, nil)
	}
	var text strings.Builder
	for _, p := range played {
		fmt.Fprintf(&text, "%s  %s  %s\n", verdict(p.Outcome), p.File, p.Name)
		for _, step := range p.Steps {
			if verbose || len(step.Differences)+len(step.Unexpected) > 0 {
				writeStep(&text, step, verbose)
			}
		}
		for _, e := range p.Explained {
			text.WriteString("\n")
			if err := Explain(&text, Explanation{Name: string(e.Workload), Phase: workload.Queued, Explanation: e}); err != nil {
				return err
			}
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// verdict is "none" where nothing was expected.
func verdict(o scenario.Outcome) string {
	switch {
	case o.Passed:
		return "ok  "
	case o.Checked == 0:
		return "none"
	}
	return "FAIL"
}

func writeStep(text *strings.Builder, s scenario.StepOutcome, verbose bool) {
	what := s.Event
	if s.Step == 0 || what == "" {
		what = "the beginning"
	}
	fmt.Fprintf(text, "      step %d, %s", s.Step, what)
	if s.Note != "" {
		fmt.Fprintf(text, " (%s)", s.Note)
	}
	fmt.Fprintln(text)
	if verbose {
		fmt.Fprintf(text, "        at        %s\n", s.At.Format(time.RFC3339))
		for _, a := range s.Admitted {
			fmt.Fprintf(text, "        admitted  %s on %s\n", a.Name, strings.Join(a.Nodes(), ", "))
		}
		for _, list := range []struct {
			word  string
			items []scenario.ReasonOutcome
		}{{"evicted", s.Evicted}, {"ended", s.Ended}, {"rejected", s.Rejected}, {"waiting", s.Waiting}} {
			for _, r := range list.items {
				fmt.Fprintf(text, "        %-9s %s", list.word, r.Name)
				if r.Reason != nil {
					fmt.Fprintf(text, " (%s: %s)", r.Reason.Kind, r.Reason.Message)
				}
				fmt.Fprintln(text)
			}
		}
	}
	for _, difference := range s.Differences {
		fmt.Fprintf(text, "        %s\n", difference)
	}
	for _, r := range s.Rejected {
		if !verbose && slices.Contains(s.Unexpected, r.Name) {
			fmt.Fprintf(text, "        rejected, which no step expects: %s (%s)\n", r.Name, r.Reason.Message)
		}
	}
}
