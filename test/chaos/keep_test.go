package chaos

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestKeep: outcomes of several runs come to one table; those of the same fault to one
// row.
func TestKeep(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "outcomes.json")
	first := []Row{{Fault: "intake killed", Runs: 2, Gangs: 100, Recovered: []time.Duration{time.Second, 2 * time.Second}}}
	if _, err := Keep(file, first); err != nil {
		t.Fatal(err)
	}
	got, err := Keep(file, []Row{
		{Fault: "intake killed", Runs: 1, Gangs: 50, Broken: []string{"a gang was lost"}},
		{Fault: "postgres killed", Runs: 1, Gangs: 50, Recovered: []time.Duration{time.Second}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []Row{
		{Fault: "intake killed", Runs: 3, Gangs: 150, Recovered: []time.Duration{time.Second, 2 * time.Second}, Broken: []string{"a gang was lost"}},
		{Fault: "postgres killed", Runs: 1, Gangs: 50, Recovered: []time.Duration{time.Second}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
}
