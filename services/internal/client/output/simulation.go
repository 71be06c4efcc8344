package output

import (
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
	span := func(seconds float64) string {
		return duration.HumanDuration(time.Duration(seconds * float64(time.Second)))
	}
	for _, r := range results {
		t.Rows = append(t.Rows, []string{
			r.Policy, strconv.Itoa(r.Nodes), strconv.Itoa(r.Jobs), strconv.Itoa(r.Left.Total()),
			span(r.MeanWait), span(r.MedianWait), span(r.P95Wait), span(r.MaxWait),
			strconv.FormatFloat(r.AverageBoundedSlowdown, 'f', 2, 64),
			strconv.FormatFloat(100*r.Utilisation, 'f', 1, 64) + " %", span(r.Makespan),
		})
	}
	return t
}
