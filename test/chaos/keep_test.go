package chaos

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Outcomes of several runs come to one table; those of the same fault to one row.
func TestMerged(t *testing.T) {
	t.Parallel()
	first := merged(nil, []Row{{Fault: "intake killed", Runs: 2, Gangs: 100, Recovered: []time.Duration{time.Second, 2 * time.Second}}})
	got := merged(first, []Row{
		{Fault: "intake killed", Runs: 1, Gangs: 50, Broken: []string{"a gang was lost"}},
		{Fault: "postgres killed", Runs: 1, Gangs: 50, Recovered: []time.Duration{time.Second}},
	})
	want := []Row{
		{Fault: "intake killed", Runs: 3, Gangs: 150, Recovered: []time.Duration{time.Second, 2 * time.Second}, Broken: []string{"a gang was lost"}},
		{Fault: "postgres killed", Runs: 1, Gangs: 50, Recovered: []time.Duration{time.Second}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
}
