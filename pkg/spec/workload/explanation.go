package workload

import (
	"slices"

	"muster.dev/muster/pkg/spec/resource"
)

// Explanation is why a workload waits, where, and what would change it.
type Explanation struct {
	Workload ID     `json:"workload"`
	Queue    string `json:"queue"` // the ClusterQueue
	// Position among the waiting workloads of its queue, from 1; 0 for a workload that
	// is not in line, for example while gangs are being evicted for it.
	Position int    `json:"position,omitempty"`
	Waiting  int    `json:"waiting"` // in its queue
	Reason   Reason `json:"reason"`
	// PastUse of its LocalQueue, where the ClusterQueue orders its workloads by that.
	PastUse *PastUse `json:"pastUse,omitempty"`
	// Clusters has, for each cluster with nodes, why the workload does not start there.
	Clusters []ClusterReason `json:"clusters,omitempty"`
	// Changes are the smallest of their kind, each of which alone would admit the
	// workload now.
	Changes []Change `json:"changes,omitempty"`
	// Partial: the search for more changes was stopped because of its time.
	Partial bool `json:"partial,omitempty"`
	// Eviction is what the workload would lose if it was evicted now; only of one that has
	// started.
	Eviction *EvictionCost `json:"eviction,omitempty"`
}

// ForTenant returns the explanation as Reason.ForTenant does reasons, without the clusters
// that are kept for other queues.
func (e Explanation) ForTenant() Explanation {
	e.Reason = *e.Reason.ForTenant()
	e.Clusters = slices.DeleteFunc(slices.Clone(e.Clusters), func(c ClusterReason) bool { return c.Foreign })
	e.Changes = slices.Clone(e.Changes)
	for i := range e.Changes {
		c := &e.Changes[i]
		c.Workloads, c.Foreign = without(c.Workloads, c.Foreign), nil
	}
	return e
}

// ClusterReason is why a workload does not start in a cluster.
type ClusterReason struct {
	Cluster string `json:"cluster"`
	Message string `json:"message"`
	// Open: the cluster takes the workload, and only room or quota lacks.
	Open bool `json:"open,omitempty"`
	// Preferred: the workload prefers the cluster.
	Preferred bool `json:"preferred,omitempty"`
	// Foreign: the cluster takes no gangs of the workload's queue. Only operators see it: see
	// ForTenant.
	Foreign bool `json:"foreign,omitempty"`
}

// ChangeKind is what is to change.
type ChangeKind string

// The kinds of changes.
const (
	ChangeFewerPods ChangeKind = "FewerPods" // Pods fewer of PodSet
	ChangeMoreNodes ChangeKind = "MoreNodes" // Nodes more that are like node Like, empty, in Cluster
	ChangeMoreQuota ChangeKind = "MoreQuota" // the nominal quota of Quota raised
	ChangeAfterEnd  ChangeKind = "AfterEnd"  // Workloads end, and their pods go
	ChangeResume    ChangeKind = "Resume"    // it, or its queue, is not held any more
	ChangePriority  ChangeKind = "Priority"  // it has at least Priority
	ChangeOpenNode  ChangeKind = "OpenNode"  // Node in Cluster is not cordoned and not drained any more
)

// Change is something that would admit a workload.
type Change struct {
	Kind    ChangeKind `json:"kind"`
	Message string     `json:"message"`
	PodSet  string     `json:"podSet,omitempty"`
	Pods    int        `json:"pods,omitempty"`
	Cluster string     `json:"cluster,omitempty"`
	Like    string     `json:"like,omitempty"`
	Nodes   int        `json:"nodes,omitempty"`
	Node    string     `json:"node,omitempty"`
	// Quota lists the quotas to raise, and by how much.
	Quota     []QuotaRaise `json:"quota,omitempty"`
	Workloads []ID         `json:"workloads,omitempty"`
	// Foreign lists those of Workloads that belong to other queues.
	Foreign  []ID  `json:"foreign,omitempty"`
	Priority int32 `json:"priority,omitempty"`
}

// QuotaRaise is an amount by which a nominal quota is to grow.
type QuotaRaise struct {
	Queue    string        `json:"queue"`
	Flavor   string        `json:"flavor"`
	Resource resource.Name `json:"resource"`
	Amount   int64         `json:"amount"`
}
