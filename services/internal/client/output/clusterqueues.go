package output

import (
	"strconv"
	"strings"

	"muster.dev/muster/pkg/message/query"
)

// ClusterQueues is the table of ClusterQueues.
func ClusterQueues(all []query.ClusterQueue) Table {
	t := Table{Header: []string{"COHORT", "NAME", "QUEUES", "HELD", "WAITING", "LIVE", "QUOTA USED"}}
	for _, c := range all {
		t.Rows = append(t.Rows, []string{
			dash(c.Cohort), c.Name, dash(strings.Join(c.Queues, ",")), Short(heldBy(query.Queue{Inactive: c.Inactive, StopPolicy: c.StopPolicy, Hold: c.Hold}), heldWidth),
			strconv.Itoa(c.Waiting), strconv.Itoa(c.Live), used(query.Queue{Quota: c.Quota}),
		})
	}
	return t
}
