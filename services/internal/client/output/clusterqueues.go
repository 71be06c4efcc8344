package output

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/query"
)

// ClusterQueue is a ClusterQueue with the sums of the queues that it serves.
type ClusterQueue struct {
	Name     string       `json:"name"`
	Cohort   string       `json:"cohort,omitempty"`
	Queues   []string     `json:"queues"`
	Waiting  int          `json:"waiting"`
	Live     int          `json:"live"`
	Quota    []quota.Line `json:"quota,omitempty"`
	Share    quota.Share  `json:"share,omitempty"` // of what the cohort lends, in millionths
	Inactive string       `json:"inactive,omitempty"`
}

// ClusterQueuesOf returns the ClusterQueues of some queues, by cohort and name.
func ClusterQueuesOf(queues []query.Queue) []ClusterQueue {
	var all []ClusterQueue
	for _, q := range queues {
		i := slices.IndexFunc(all, func(c ClusterQueue) bool { return c.Name == q.ClusterQueue })
		if i < 0 {
			i = len(all)
			all = append(all, ClusterQueue{Name: q.ClusterQueue, Cohort: q.Cohort, Quota: q.Quota, Share: q.Share, Inactive: q.Inactive})
		}
		all[i].Queues = append(all[i].Queues, q.Name)
		all[i].Waiting += q.Waiting
		all[i].Live += q.Live
	}
	slices.SortFunc(all, func(a, b ClusterQueue) int {
		return cmp.Or(cmp.Compare(a.Cohort, b.Cohort), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// ClusterQueues is the table of ClusterQueues.
func ClusterQueues(all []ClusterQueue) Table {
	t := Table{Header: []string{"COHORT", "NAME", "QUEUES", "WAITING", "LIVE", "QUOTA USED"}}
	for _, c := range all {
		t.Rows = append(t.Rows, []string{
			dash(c.Cohort), c.Name, strings.Join(c.Queues, ","), strconv.Itoa(c.Waiting), strconv.Itoa(c.Live), used(query.Queue{Quota: c.Quota}),
		})
	}
	return t
}
