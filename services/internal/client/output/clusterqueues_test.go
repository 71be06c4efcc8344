package output_test

import (
	"strings"
	"testing"

	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/services/internal/client/output"
)

// TestClusterQueues: the queues of a ClusterQueue are one row, with its quota once.
func TestClusterQueues(t *testing.T) {
	t.Parallel()
	first, second, alone := queue(), queue(), query.Queue{Name: "alone", ClusterQueue: "alone", Waiting: 7}
	first.Name, second.Name = "night", "day"
	all := output.ClusterQueuesOf([]query.Queue{first, alone, second})
	var table strings.Builder
	if err := output.ClusterQueues(all).Write(&table, ""); err != nil {
		t.Fatal(err)
	}
	want := `COHORT   NAME      QUEUES      WAITING   LIVE   QUOTA USED
-        alone     alone       7         0      -
all      default   night,day   2         4      nvidia.com/gpu 4/3 (1 borrowed)
`
	if table.String() != want {
		t.Errorf("the table is\n%s\nwant\n%s", table.String(), want)
	}
}
