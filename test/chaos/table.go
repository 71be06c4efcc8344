// Package chaos causes every fault that one machine can produce in an installation
// of real processes under load, several times, and has an independent checker prove
// that nothing was lost, doubled, leaked or over-committed.
//
// The faults, the load and the checker are test/suite's, the processes are
// test/suite/local's; here is the run of all of it and its table.
package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/test/suite"
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

// Keep adds rows to those of earlier runs in a file, and returns all: a row of a fault
// that is there counts its runs, too.
func Keep(file string, added []Row) ([]Row, error) {
	var all []Row
	content, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(content, &all)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the outcomes in %s: %w", file, err)
	}
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
	if content, err = json.MarshalIndent(all, "", "  "); err != nil {
		return nil, err
	}
	return all, os.WriteFile(file, content, 0o644)
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
		fmt.Fprintf(&b, "| %s | %d | %d | %s | %s |\n", r.Fault, r.Runs, r.Gangs, result, recovery(r.Recovered))
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

// Marks in a page, between which a table stands.
func beginMark(name string) string { return "<!-- " + name + ": begin -->\n" }

func endMark(name string) string { return "<!-- " + name + ": end -->\n" }

// Write puts a table into a page, between its marks.
func Write(file, name, table string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	begin, end := beginMark(name), endMark(name)
	before, rest, found := strings.Cut(string(content), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return fmt.Errorf("%s: want the lines %q and %q, between which the table is put", file, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return os.WriteFile(file, []byte(before+begin+table+end+after), 0o644)
}
