package output

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/whatif/estimate"
)

// TestPlaybacks: each column has its waits, hours and utilisation; a release that does not report
// the last has none.
func TestPlaybacks(t *testing.T) {
	t.Parallel()
	const gpu resource.Name = "nvidia.com/gpu"
	of := func(started int, hours, part float64) estimate.Result {
		return estimate.Result{
			Totals: estimate.Totals{Started: started, Evictions: 2, WaitP50: 60}, Held: map[resource.Name]float64{gpu: hours * 3600, "memory": 1 << 40},
			Utilisation: map[resource.Name]float64{gpu: part, "memory": 0.5},
		}
	}
	older := of(5, 8, 0)
	older.Utilisation = nil
	want := map[string][]string{
		"started": {"3", "4", "5"}, "evictions": {"2", "2", "2"}, "wait p50": {wait(60), wait(60), wait(60)},
		"nvidia.com/gpu hours": {"6.00", "7.00", "8.00"}, "nvidia.com/gpu utilisation": {"60.0 %", "70.0 %", "-"},
	}
	for name, against := range map[string]*estimate.Result{"as it was": nil, "against a release": &older} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			table, columns := Playbacks(of(3, 6, 0.6), of(4, 7, 0.7), against), 2
			if against != nil {
				columns++
			}
			if len(table.Header) != columns+1 {
				t.Errorf("the header is %q, want %d columns", table.Header, columns)
			}
			rows := map[string][]string{}
			for _, row := range table.Rows {
				rows[row[0]] = row[1:]
			}
			for name, values := range want {
				if diff := cmp.Diff(values[:columns], rows[name]); diff != "" {
					t.Errorf("%s: %s", name, diff)
				}
			}
			if rows["memory utilisation"] != nil {
				t.Errorf("memory is shown: %q", table.Rows)
			}
		})
	}
}
