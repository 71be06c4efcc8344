// Package chaos causes every fault that one machine can produce in an installation
// of real processes under load, several times, and has an independent checker prove
// that nothing was lost, doubled, leaked or over-committed.
//
// The faults, the load and the checker are test/suite's, the processes are
// test/suite/local's; here is the run of all of it and its table.
package chaos

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/test/suite"
)

// Table is the outcomes for a page: fault, runs, what was found, and how long
// recovery took.
func Table(outcomes []suite.Outcome) string {
	var b strings.Builder
	b.WriteString("| fault | runs | gangs | result | recovery: median, longest |\n|---|---|---|---|---|\n")
	for _, o := range outcomes {
		result := "nothing lost, doubled, leaked or over-committed"
		switch {
		case o.NotHere != "":
			result = "not tried: " + o.NotHere
		case len(o.Broken) > 0:
			result = fmt.Sprintf("**%d breaches**: %s", len(o.Broken), strings.ReplaceAll(o.Broken[0], "|", "/"))
		case o.Runs == 0 || len(o.Recovered) < o.Runs:
			result = "**did not recover**"
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %s | %s |\n", o.Trial, o.Runs, o.Gangs, result, recovery(o.Recovered))
	}
	return b.String()
}

func recovery(took []time.Duration) string {
	if len(took) == 0 {
		return "-"
	}
	sorted := slices.Sorted(slices.Values(took))
	return fmt.Sprintf("%.1f s, %.1f s", sorted[len(sorted)/2].Seconds(), sorted[len(sorted)-1].Seconds())
}

// Marks in a page, between which the table stands.
const (
	beginMark = "<!-- chaos: begin -->\n"
	endMark   = "<!-- chaos: end -->\n"
)

// Write puts the table into a page, between its marks.
func Write(file, table string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(content), beginMark)
	_, after, closed := strings.Cut(rest, endMark)
	if !found || !closed {
		return fmt.Errorf("%s: want the lines %q and %q, between which the table is put", file, strings.TrimSpace(beginMark), strings.TrimSpace(endMark))
	}
	return os.WriteFile(file, []byte(before+beginMark+table+endMark+after), 0o644)
}
