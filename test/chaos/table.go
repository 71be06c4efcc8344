// Package chaos causes every fault that one machine can produce in an installation
// of real processes under load, several times, and has an independent checker prove
// that nothing was lost, doubled, leaked or over-committed.
//
// The faults, the load and the checker are test/suite's, the processes are
// test/suite/local's; here is the run of all of it and its table.
package chaos

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/test/suite"
	"muster.dev/muster/test/suite/kept"
)

// Row is what came of the runs of one fault.
type Row struct {
	Fault     string          `json:"fault"`
	Runs      int             `json:"runs"`
	Gangs     int             `json:"gangs"`
	Recovered []time.Duration `json:"recovered"` // of each run that did
	Broken    []string        `json:"broken,omitempty"`
	NotHere   string          `json:"notHere,omitempty"`
}

func rows(outcomes []suite.Outcome) (rows []Row) {
	for _, o := range outcomes {
		rows = append(rows, Row{o.Trial.String(), o.Runs, o.Gangs, o.Recovered, o.Broken, o.NotHere})
	}
	return rows
}

// merged adds rows to those of earlier runs: a row of a fault that is there counts its
// runs, too.
func merged(all, added []Row) []Row {
	for _, row := range added {
		at := slices.IndexFunc(all, func(r Row) bool { return r.Fault == row.Fault })
		if at < 0 {
			all = append(all, row)
			continue
		}
		known := &all[at]
		known.Runs, known.Gangs = known.Runs+row.Runs, known.Gangs+row.Gangs
		known.Recovered, known.Broken = append(known.Recovered, row.Recovered...), append(known.Broken, row.Broken...)
	}
	return all
}

// runsOf counts the runs of each fault.
func runsOf(rows []Row) map[string]int {
	runs := map[string]int{}
	for _, r := range rows {
		runs[r.Fault] += r.Runs
	}
	return runs
}

// Table is the outcomes for a page: fault, runs, what was found, and how long
// recovery took.
func Table(rows []Row) string {
	var b strings.Builder
	b.WriteString("| fault | runs | gangs | result | recovery: median, longest |\n|---|---|---|---|---|\n")
	for _, r := range rows {
		result := "nothing lost, doubled, leaked or over-committed"
		switch {
		case r.NotHere != "":
			result = "not tried: " + r.NotHere
		case len(r.Broken) > 0:
			result = fmt.Sprintf("**breaches: %d**: %s", len(r.Broken), strings.ReplaceAll(r.Broken[0], "|", "/"))
		case r.Runs == 0 || len(r.Recovered) < r.Runs:
			result = fmt.Sprintf("**%d of %d did not recover**", r.Runs-len(r.Recovered), r.Runs)
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %s | %s |\n", r.Fault, r.Runs, r.Gangs, result, kept.MedianAndLongest(r.Recovered))
	}
	return b.String()
}
