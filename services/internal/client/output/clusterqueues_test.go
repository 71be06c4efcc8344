package output_test

import (
	"strings"
	"testing"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/services/internal/client/output"
)

// TestClusterQueues: the queues of a ClusterQueue are one row, with its quota once and what
// holds it; one that no queue leads to is a row, too.
func TestClusterQueues(t *testing.T) {
	t.Parallel()
	first, second := queue(), query.Queue{Name: "day", Namespaces: []string{"team"}, ClusterQueue: "default", Waiting: 1}
	alone := query.Queue{Name: "alone", ClusterQueue: "alone", Waiting: 7, Inactive: "it asks for more"}
	all := query.ClusterQueuesOf([]query.ClusterQueue{{Name: "idle", Cohort: "all", StopPolicy: quota.Hold}}, []query.Queue{first, alone, second})
	var table strings.Builder
	if err := output.ClusterQueues(all).Write(&table, ""); err != nil {
		t.Fatal(err)
	}
	want := `COHORT   NAME      QUEUES             HELD       WAITING   LIVE   QUOTA USED
-        alone     alone              inactive   7         0      -
all      default   default,team/day   -          2         2      nvidia.com/gpu 4/3 (1 borrowed)
all      idle      -                  Hold       0         0      -
`
	if table.String() != want {
		t.Errorf("the table is\n%s\nwant\n%s", table.String(), want)
	}
}

// TestQueuesOfOneName: the namespace distinguishes queues of one name.
func TestQueuesOfOneName(t *testing.T) {
	t.Parallel()
	queues := []query.Queue{
		{Name: "batch", Namespaces: []string{"team-b"}}, {Name: "user-queue", Namespaces: []string{"team-a"}, Live: 4},
		{Name: "user-queue", Namespaces: []string{"team-b"}, Waiting: 2, Inactive: "it asks for more"},
	}
	var table strings.Builder
	if err := output.Queues(queues, output.Text).Write(&table, ""); err != nil {
		t.Fatal(err)
	}
	const want = `NAMESPACE   NAME         HELD       WAITING   LIVE   QUOTA USED   RESERVED
team-b      batch        -          0         0      -            nothing
team-a      user-queue   -          0         4      -            nothing
team-b      user-queue   inactive   2         0      -            nothing
`
	if table.String() != want {
		t.Errorf("the table is\n%s\nwant\n%s", table.String(), want)
	}
}
