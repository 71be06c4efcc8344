package query

import (
	"cmp"
	"slices"

	"muster.dev/muster/pkg/decide/quota"
)

// ClusterQueue is a ClusterQueue with the sums of the queues that it serves.
type ClusterQueue struct {
	Name   string `json:"name"`
	Cohort string `json:"cohort,omitempty"`
	// Queues that lead to it: a LocalQueue as NAMESPACE/NAME, a queue of several namespaces by
	// its name.
	Queues   []string `json:"queues"`
	Strategy string   `json:"strategy,omitempty"`
	Waiting  int      `json:"waiting"`
	// Provisioning are those of the waiting ones that hold quota while nodes, or AdmissionChecks, are asked.
	Provisioning int          `json:"provisioning,omitempty"`
	Live         int          `json:"live"`
	Quota        []quota.Line `json:"quota,omitempty"`
	Share        quota.Share  `json:"share,omitempty"` // of what the cohort lends, in millionths
	// StopPolicy is set while its manifest holds it: Hold or HoldAndDrain.
	StopPolicy string `json:"stopPolicy,omitempty"`
	Inactive   string `json:"inactive,omitempty"`
	// Hold is set while an operator holds it.
	Hold *quota.QueueStop `json:"hold,omitempty"`
}

// Title names a queue among those of its name: a queue of one namespace by that, too.
func (q Queue) Title() string {
	if len(q.Namespaces) == 1 {
		return q.Namespaces[0] + "/" + q.Name
	}
	return q.Name
}

// ClusterQueuesOf returns known ClusterQueues with the sums of the queues that lead to them, by
// cohort and name. A ClusterQueue that is not among the known ones is as its queues show: a
// tenant knows no others.
func ClusterQueuesOf(known []ClusterQueue, queues []Queue) []ClusterQueue {
	all, at := slices.Clone(known), map[string]int{}
	for i, c := range all {
		at[c.Name] = i
	}
	for _, q := range queues {
		i, there := at[q.ClusterQueue]
		if !there {
			i = len(all)
			at[q.ClusterQueue] = i
			all = append(all, ClusterQueue{Name: q.ClusterQueue, Cohort: q.Cohort, Strategy: q.Strategy, Quota: q.Quota, Share: q.Share, Inactive: q.Inactive, Hold: q.ClusterQueueHold})
		}
		c := &all[i]
		c.Queues = append(c.Queues, q.Title())
		c.Waiting, c.Provisioning, c.Live = c.Waiting+q.Waiting, c.Provisioning+q.Provisioning, c.Live+q.Live
	}
	slices.SortFunc(all, func(a, b ClusterQueue) int {
		return cmp.Or(cmp.Compare(a.Cohort, b.Cohort), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// Named returns the queues of a name that serve a namespace, or all of the name for none.
func Named(queues []Queue, name, namespace string) (found []Queue) {
	for _, q := range queues {
		if q.Name == name && (namespace == "" || slices.Contains(q.Namespaces, namespace)) {
			found = append(found, q)
		}
	}
	return found
}

// NamespacesOf returns the namespaces of some queues, sorted.
func NamespacesOf(queues []Queue) (all []string) {
	for _, q := range queues {
		all = append(all, q.Namespaces...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
