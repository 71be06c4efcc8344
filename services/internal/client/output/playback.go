package output

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/whatif/estimate"
)

// Playbacks is the table of what became of a history: as it was recorded, as it is decided now,
// and against another policy or release unless that is nil.
func Playbacks(recorded, now estimate.Result, against *estimate.Result) Table {
	t := Table{Header: []string{"", "RECORDED", "PLAYED"}}
	all := []estimate.Result{recorded, now}
	if against != nil {
		t.Header, all = append(t.Header, "AGAINST"), append(all, *against)
	}
	add := func(name string, of func(estimate.Result) string) {
		row := []string{name}
		for _, r := range all {
			row = append(row, of(r))
		}
		t.Rows = append(t.Rows, row)
	}
	count := func(of func(estimate.Totals) int) func(estimate.Result) string {
		return func(r estimate.Result) string { return strconv.Itoa(of(r.Totals)) }
	}
	span := func(of func(estimate.Totals) float64) func(estimate.Result) string {
		return func(r estimate.Result) string { return wait(of(r.Totals)) }
	}
	add("started", count(func(t estimate.Totals) int { return t.Started }))
	add("wait at the end", count(func(t estimate.Totals) int { return t.Waiting }))
	add("refused", count(func(t estimate.Totals) int { return t.Refused }))
	add("evictions", count(func(t estimate.Totals) int { return t.Evictions }))
	add("wait p50", span(func(t estimate.Totals) float64 { return t.WaitP50 }))
	add("wait p90", span(func(t estimate.Totals) float64 { return t.WaitP90 }))
	add("wait mean", span(func(t estimate.Totals) float64 { return t.WaitMean }))
	add("wait max", span(func(t estimate.Totals) float64 { return t.WaitMax }))
	names := map[resource.Name]bool{}
	for _, r := range all {
		for name := range r.Held {
			if strings.Contains(string(name), "/") || name == resource.CPU {
				names[name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		add(string(name)+" hours", func(r estimate.Result) string {
			seconds := r.Held[name]
			if name == resource.CPU {
				seconds /= 1000
			}
			return decimal(hours(name, seconds))
		})
		add(string(name)+" utilisation", func(r estimate.Result) string {
			part, known := r.Utilisation[name]
			if !known { // the nodes offer none, or an older release played
				return "-"
			}
			return percent(part)
		})
	}
	return t
}

// mostFared bounds the rows of workloads that fared differently; -o json has all.
const mostFared = 100

// Fared is the table of workloads that fared differently.
func Fared(all []estimate.Difference) Table {
	t := Table{Header: []string{"NAMESPACE", "NAME", "QUEUE", "WAITED", "AGAINST", "EVICTIONS", "NOTE"}, Long: []string{"NOTE"}}
	waited := func(d estimate.Difference, started time.Time) string {
		if started.IsZero() {
			return "-"
		}
		return wait(max(0, started.Sub(d.Submitted).Seconds()))
	}
	for _, d := range all[:min(len(all), mostFared)] {
		note := d.Class
		if d.Refused != "" {
			note += ": " + d.Refused
		}
		t.Rows = append(t.Rows, []string{
			dash(d.Namespace), d.Name, d.Queue, waited(d, d.Before), waited(d, d.Started), fmt.Sprintf("%d, %d", d.EvictionsBefore, d.Evictions), note,
		})
	}
	if more := len(all) - mostFared; more > 0 {
		t.Rows = append(t.Rows, []string{"", fmt.Sprintf("and %d more", more), "", "", "", "", "-o json has all"})
	}
	return t
}
