package output

import (
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"muster.dev/muster/pkg/whatif/simulation"
)

// Simulations shows the outcomes of simulations, one below the other.
func Simulations(results []simulation.Result) Table {
	t := Table{Header: []string{
		"POLICY", "NODES", "JOBS", "LEFT OUT", "MEAN WAIT", "MEDIAN", "P95", "LONGEST", "BOUNDED SLOWDOWN", "UTILISATION", "MAKESPAN",
	}}
	estimated := slices.ContainsFunc(results, func(r simulation.Result) bool { return r.ETA != nil })
	if estimated {
		t.Header = append(t.Header, "ESTIMATED", "BY P50", "BY P90", "MEDIAN ERROR")
	}
	evicted := slices.ContainsFunc(results, func(r simulation.Result) bool { return r.Evictions > 0 })
	if evicted {
		t.Header = append(t.Header, "EVICTIONS", "LOST HOURS")
	}
	span := func(seconds float64) string {
		return duration.HumanDuration(time.Duration(seconds * float64(time.Second)))
	}
	for _, r := range results {
		row := []string{
			r.Policy, strconv.Itoa(r.Nodes), strconv.Itoa(r.Jobs), strconv.Itoa(r.Left.Total()),
			span(r.MeanWait), span(r.MedianWait), span(r.P95Wait), span(r.MaxWait),
			strconv.FormatFloat(r.AverageBoundedSlowdown, 'f', 2, 64),
			percent(r.Utilisation), span(r.Makespan),
		}
		if r.ETA != nil {
			row = append(row, strconv.Itoa(r.Estimated), percent(r.P50Coverage), percent(r.P90Coverage), span(r.MedianError))
		}
		if evicted {
			row = append(row, strconv.Itoa(r.Evictions), strconv.FormatFloat(r.LostHours, 'f', 0, 64))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// percent writes a part of one.
func percent(part float64) string { return strconv.FormatFloat(100*part, 'f', 1, 64) + " %" }
