package output

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/spec/resource"
)

// CSV is a format of reports.
const CSV Format = "csv"

// OrCSV is the flag of a command that prints a report: it also takes csv, and table for the
// text.
func OrCSV(f *Format) pflag.Value { return orCSV{f} }

type orCSV struct{ *Format }

// Set implements pflag.Value.
func (o orCSV) Set(name string) error {
	switch {
	case name == string(CSV):
		*o.Format = CSV
		return nil
	case name == "table":
		*o.Format = Text
		return nil
	case name == string(Name) || o.Format.Set(name) != nil:
		return errors.New("want text, csv, json, yaml or jsonpath=EXPRESSION")
	}
	return nil
}

// hours is a sum in hours of a unit, of bytes in gibibytes.
func hours(name resource.Name, seconds float64) float64 {
	if resource.InBytes(name) {
		seconds /= 1 << 30
	}
	return seconds / time.Hour.Seconds()
}

// Usage is the table of what was used: of all resources, or of accelerators where there are
// any.
func Usage(answer query.UsageAnswer, all bool) Table {
	t := Table{}
	for _, key := range answer.By {
		t.Header = append(t.Header, strings.ToUpper(key))
	}
	t.Header = append(t.Header, "RESOURCE", "RESERVED", "STARTING", "RUNNING", "STOPPING", "LOST", "IDLE", "WASTED", "ADMITTED", "WAIT P50", "WAIT P90", "WAIT MAX")
	priced := slices.ContainsFunc(answer.Rows, func(r query.UsageRow) bool { return r.Cost != 0 })
	if priced {
		t.Header = append(t.Header, "COST")
	}
	devices := slices.ContainsFunc(answer.Rows, func(r query.UsageRow) bool { return slices.ContainsFunc(r.Resources, isDevice) })
	for _, r := range answer.Rows {
		first := true
		for _, u := range r.Resources {
			if !all && devices && !isDevice(u) {
				continue
			}
			t.Rows = append(t.Rows, usageCells(r, u, first, priced))
			first = false
		}
		if first {
			t.Rows = append(t.Rows, usageCells(r, query.UsedResource{}, true, priced))
		}
	}
	return t
}

// isDevice reports whether a resource is an extended one: those have a domain.
func isDevice(u query.UsedResource) bool { return strings.Contains(string(u.Resource), "/") }

// usageCells are a line of a row; what is of the whole row is in its first line only.
func usageCells(r query.UsageRow, u query.UsedResource, first, priced bool) []string {
	var cells []string
	for _, value := range r.Key {
		cells = append(cells, dash(value))
	}
	cells = append(cells, dash(string(u.Resource)))
	for _, seconds := range []float64{u.Reserved, u.Starting, u.Running, u.Stopping, u.Lost, u.Idle, u.Wasted()} {
		cells = append(cells, decimal(hours(u.Resource, seconds)))
	}
	whole := []string{strconv.Itoa(r.Admissions), "-", "-", "-"}
	if r.Admissions > 0 {
		whole = []string{whole[0], wait(r.Waits.P50), wait(r.Waits.P90), wait(r.Waits.Max)}
	}
	if priced {
		whole = append(whole, decimal(r.Cost))
	}
	if !first {
		whole = make([]string, len(whole))
	}
	return append(cells, whole...)
}

func decimal(value float64) string { return strconv.FormatFloat(value, 'f', 2, 64) }

func wait(seconds float64) string {
	return Latency(time.Duration(seconds * float64(time.Second)).Round(time.Millisecond))
}

// UsageBegins returns since when what was used is known.
func UsageBegins(answer query.UsageAnswer) string {
	if answer.Oldest.IsZero() {
		return "Nothing was used yet, or the history is not kept."
	}
	return fmt.Sprintf("The history begins at %s: of earlier times only what workloads that still hold places have held is known.", answer.Oldest.UTC().Format(time.RFC3339))
}

// UsageCSV writes a line for each row and resource, with sums in hours of the unit, of
// bytes in gibibytes, and waits in seconds. What is of a whole row is in each of its lines.
func UsageCSV(w io.Writer, answer query.UsageAnswer) error {
	out := csv.NewWriter(w)
	header := slices.Concat(answer.By, []string{
		"resource", "reserved_hours", "starting_hours", "running_hours", "stopping_hours", "lost_hours", "idle_hours", "wasted_hours",
		"admissions", "wait_p50_seconds", "wait_p90_seconds", "wait_p99_seconds", "wait_max_seconds", "row_cost",
	})
	if err := out.Write(header); err != nil {
		return err
	}
	exact := func(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }
	for _, r := range answer.Rows {
		for _, u := range r.Resources {
			var line []string
			for _, value := range r.Key {
				line = append(line, plainCell(value))
			}
			line = append(line, plainCell(string(u.Resource)))
			for _, seconds := range []float64{u.Reserved, u.Starting, u.Running, u.Stopping, u.Lost, u.Idle, u.Wasted()} {
				line = append(line, exact(hours(u.Resource, seconds)))
			}
			line = append(line, strconv.Itoa(r.Admissions))
			for _, value := range []float64{r.Waits.P50, r.Waits.P90, r.Waits.P99, r.Waits.Max, r.Cost} {
				line = append(line, exact(value))
			}
			if err := out.Write(line); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

// plainCell keeps a spreadsheet from taking a name for a formula.
func plainCell(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
