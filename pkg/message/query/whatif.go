package query

import (
	"context"
	"time"

	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// WhatIfSubject asks what a change would do; nothing is changed.
const WhatIfSubject = "muster.query.whatif"

// Bounds of one what-if.
const (
	MaxWhatIfChanges = 100    // of each kind
	MaxWhatIfNodes   = 10_000 // that are added
	MaxWhatIfPods    = 10_000 // of what is submitted, in sum
	MaxWhatIfFile    = 512 << 10
)

// WhatIfRequest is a change to try on a copy of the live state.
type WhatIfRequest struct {
	AddNodes []NodesLike `json:"addNodes,omitempty"`
	// Drain has nodes on which nothing is placed any more, and from which gangs are evicted.
	Drain []NodeName `json:"drain,omitempty"`
	// DrainAll has sets of nodes that are drained as a whole: racks, clusters.
	DrainAll []NodeSet `json:"drainAll,omitempty"`
	// Workloads that wait, with another priority, queue or size, or that run, with another
	// priority.
	Workloads []WorkloadChange `json:"workloads,omitempty"`
	// Submit has workloads that would be submitted now.
	Submit []WhatIfSubmission `json:"submit,omitempty"`
	// QueuesFile is the content of a queues file that would be in the place of the present
	// one; empty for no change.
	QueuesFile string `json:"queuesFile,omitempty"`
	// Within: the answer names workloads of these places alone; empty for all.
	Within []Place `json:"within,omitempty"`
	// For is the caller for whom a service asks, whose time is counted apart from that of others;
	// the HTTP API puts its own caller in its place.
	For string `json:"for,omitempty"`
}

// WhatIfSubmission is a workload that would be submitted. Without a submitter it is that of the
// caller for whom a service asks.
type WhatIfSubmission struct {
	workload.Workload
	// PriorityClass is the name of the class that gives it its priority; empty for none.
	PriorityClass string `json:"priorityClass,omitempty"`
}

// NodeName is the name of a node in a cluster.
type NodeName struct {
	Cluster string `json:"cluster"`
	Name    string `json:"name"`
}

// NodeSet is all nodes of a cluster, or of all clusters if it is empty, that have a label; of a
// cluster the label may be left out.
type NodeSet struct {
	Cluster string `json:"cluster,omitempty"`
	Label   string `json:"label,omitempty"`
	Value   string `json:"value,omitempty"`
}

// NodesLike are empty nodes that are otherwise like a present one, or of a shape.
type NodesLike struct {
	Like  NodeName   `json:"like,omitzero"`
	Shape *NodeShape `json:"shape,omitempty"`
	Count int        `json:"count"`
}

// WorkloadChange is what is otherwise with a waiting workload. Of one that runs only the priority
// can be.
type WorkloadChange struct {
	ID       workload.ID `json:"id"`
	Priority *int32      `json:"priority,omitempty"`
	Queue    string      `json:"queue,omitempty"`
	// Pods are other numbers of pods in some of its pod sets.
	Pods []PodCount `json:"pods,omitempty"`
	// Requests are other amounts that each pod of some of its pod sets requests.
	Requests []PodRequests `json:"requests,omitempty"`
}

// PodCount is the number of pods of a pod set.
type PodCount struct {
	PodSet string `json:"podSet"`
	Count  int    `json:"count"`
}

// PodRequests are amounts that each pod of a pod set requests, in the units of answers. Those of
// other resources stay; zero is none.
type PodRequests struct {
	PodSet  string        `json:"podSet"`
	Amounts resource.List `json:"amounts"`
}

// Check refuses amounts that no pod requests.
func (r PodRequests) Check() error { return checkAmounts(r.Amounts) }

// WhatIfAnswer compares what comes with and without the change.
type WhatIfAnswer struct {
	// MadeAt and Version are of the state on which it was tried.
	MadeAt  time.Time `json:"madeAt"`
	Version int64     `json:"version"`
	// Workloads are those for which something differs, in the order of their starts with
	// the change.
	Workloads []WhatIfWorkload `json:"workloads"`
	// Same is how many waiting workloads start at the same time.
	Same int `json:"same"`
	// Others is how many workloads of other places differ, where the request has Within.
	Others int `json:"others,omitempty"`
	// Cut: the bounds ended the play, so that a workload without a time may have one.
	Cut bool `json:"cut,omitempty"`
	// LeftOut are workloads far back in their queues that were not looked at.
	LeftOut int `json:"leftOut,omitempty"`
}

// WhatIfWorkload is what a change does to one workload. A zero time is unknown.
type WhatIfWorkload struct {
	ID        workload.ID `json:"id"`
	Namespace string      `json:"namespace,omitempty"`
	Name      string      `json:"name"`
	Queue     string      `json:"queue"`
	// Before and After are when it starts without and with the change, at the median of the
	// learned run times.
	Before time.Time `json:"before,omitzero"`
	After  time.Time `json:"after,omitzero"`
	// Evicted: it runs, and is evicted with the change; After is when it starts again.
	Evicted bool `json:"evicted,omitempty"`
	// Spared: it runs, and would be evicted later without the change; Before is when it would
	// start again.
	Spared bool `json:"spared,omitempty"`
	// Submitted: it is of the change.
	Submitted bool `json:"submitted,omitempty"`
	// Refused is why it would not be accepted.
	Refused string `json:"refused,omitempty"`
}

// WhatIf asks what a change would do.
func (c *Client) WhatIf(ctx context.Context, request WhatIfRequest) (WhatIfAnswer, error) {
	return ask[WhatIfAnswer](ctx, c.transport, WhatIfSubject, request)
}
