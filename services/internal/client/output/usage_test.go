package output_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/services/internal/client/output"
)

func usageAnswer() query.UsageAnswer {
	return query.UsageAnswer{By: []string{query.ByQueue, query.ByFlavor}, Rows: []query.UsageRow{
		{
			Key: []string{"research", "a100"}, Admissions: 3, Waits: query.UsageWaits{P50: 90, P90: 600, P99: 600, Max: 600.25}, Cost: 12.5,
			Resources: []query.UsedResource{
				{Resource: "cpu", Reserved: 7200},
				{Resource: "memory", Reserved: 3600 << 30},
				{Resource: "nvidia.com/gpu", Reserved: 36000, Starting: 3600, Running: 28800, Stopping: 3600, Lost: 7200, Idle: 1800},
			},
		},
		{Key: []string{"=cmd()", ""}, Resources: []query.UsedResource{{Resource: "cpu", Reserved: 1800}}},
	}}
}

// TestUsageTable: a table has hours of accelerators, or of all resources when they were asked
// for.
func TestUsageTable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		all  bool
		want string
	}{
		"accelerators": {false, `
QUEUE      FLAVOR   RESOURCE         RESERVED   STARTING   RUNNING   STOPPING   LOST   IDLE   WASTED   ADMITTED   WAIT P50   WAIT P90   WAIT MAX   COST
research   a100     nvidia.com/gpu   10.00      1.00       8.00      1.00       2.00   0.50   3.50     3          1m30s      10m0s      10m0.3s    12.50
=cmd()     -        -                0.00       0.00       0.00      0.00       0.00   0.00   0.00     0          -          -          -          0.00
`},
		"all": {true, `
QUEUE      FLAVOR   RESOURCE         RESERVED   STARTING   RUNNING   STOPPING   LOST   IDLE   WASTED   ADMITTED   WAIT P50   WAIT P90   WAIT MAX   COST
research   a100     cpu              2.00       0.00       0.00      0.00       0.00   0.00   0.00     3          1m30s      10m0s      10m0.3s    12.50
research   a100     memory           1.00       0.00       0.00      0.00       0.00   0.00   0.00
research   a100     nvidia.com/gpu   10.00      1.00       8.00      1.00       2.00   0.50   3.50
=cmd()     -        cpu              0.50       0.00       0.00      0.00       0.00   0.00   0.00     0          -          -          -          0.00
`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var text strings.Builder
			if err := output.Usage(usageAnswer(), c.all).Write(&text, ""); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimPrefix(c.want, "\n"), text.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestUsageCSV: a line for each resource, and no cell that a spreadsheet takes for a formula.
func TestUsageCSV(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	if err := output.UsageCSV(&text, usageAnswer()); err != nil {
		t.Fatal(err)
	}
	const want = `queue,flavor,resource,reserved_hours,starting_hours,running_hours,stopping_hours,lost_hours,idle_hours,wasted_hours,admissions,wait_p50_seconds,wait_p90_seconds,wait_p99_seconds,wait_max_seconds,row_cost
research,a100,cpu,2,0,0,0,0,0,0,3,90,600,600,600.25,12.5
research,a100,memory,1,0,0,0,0,0,0,3,90,600,600,600.25,12.5
research,a100,nvidia.com/gpu,10,1,8,1,2,0.5,3.5,3,90,600,600,600.25,12.5
'=cmd(),,cpu,0.5,0,0,0,0,0,0,0,0,0,0,0,0
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Error(diff)
	}
}
