package query

import (
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/placement/certificate"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Subjects of the requests. Any queue-manager may answer.
const (
	WorkloadsSubject = "muster.query.workloads"
	HistorySubject   = "muster.query.history"
	QueuesSubject    = "muster.query.queues"
	NodesSubject     = "muster.query.nodes"
	// ExplainSubject is answered by the queue-manager that leads.
	ExplainSubject = "muster.query.explain"
	AppliedSubject = "muster.query.applied"
	// StraysSubject is what dispatchers ask of the queues.
	StraysSubject = "muster.query.strays"
)

// Subjects lists all of them.
func Subjects() []string {
	return []string{WorkloadsSubject, HistorySubject, QueuesSubject, NodesSubject, ExplainSubject, AppliedSubject, StraysSubject, StatusSubject, WhatIfSubject, UsageSubject, DemandSubject, ActivitySubject, DecisionsSubject, ManifestSubject}
}

// StraysAnswer has the rules for pods that are not Muster's.
type StraysAnswer struct {
	// Rules are workload.WarnOfStrays or EvictStrays by namespace; of all others they
	// are only counted.
	Rules map[string]string `json:"rules"`
}

// MaxPage is the largest number of rows of one answer.
const MaxPage = 500

// WorkloadsRequest selects workloads; empty fields select all.
type WorkloadsRequest struct {
	ID workload.ID `json:"id,omitempty"`
	// IDs are of any of these, MaxPage at most. A queue-manager of an earlier version ignores them.
	IDs       []workload.ID    `json:"ids,omitempty"`
	Name      string           `json:"name,omitempty"`
	Namespace string           `json:"namespace,omitempty"`
	Queue     string           `json:"queue,omitempty"`
	Phases    []workload.Phase `json:"phases,omitempty"`
	// Limit is at most MaxPage; zero means MaxPage.
	Limit int `json:"limit,omitempty"`
	// After continues behind the Next of an earlier answer.
	After int64 `json:"after,omitempty"`
	// AfterID continues behind this workload.
	AfterID workload.ID `json:"afterID,omitempty"`
	// Within leaves out the workloads of all other places; empty is everywhere.
	Within []Place `json:"within,omitempty"`
	// Labels are conditions on the labels of the manifest, all of which hold.
	Labels []LabelRequirement `json:"labels,omitempty"`
	// Home is the cluster where the objects of the workloads were made with kubectl. Queue-manager
	// itself sets it, for the intake of that cluster.
	Home string `json:"-"`
	// Order is that of submission when it is empty, or OrderPosition. An older queue-manager has
	// the first alone.
	Order string `json:"order,omitempty"`
}

// OrderPosition is the order of queues by name, and in each queue that in which its workloads are
// considered: by priority and submission, as their positions count. Only waiting workloads have
// one, and pages continue with AfterID.
const OrderPosition = "position"

// CheckOrder refuses an order that does not exist, or that the workloads of the request have not.
func (r WorkloadsRequest) CheckOrder() error {
	switch {
	case r.Order == "":
		return nil
	case r.Order != OrderPosition:
		return fmt.Errorf("order %.80q: want %s, or none for the order of submission", r.Order, OrderPosition)
	case len(r.Phases) != 1 || r.Phases[0] != workload.Queued:
		return fmt.Errorf("order %s: only waiting workloads have a position; want phase %s alone", r.Order, workload.Queued)
	case r.After != 0:
		return fmt.Errorf("order %s: want its pages to continue behind a workload, not behind submission %d", r.Order, r.After)
	}
	return nil
}

// CheckIDs refuses more ids than a page has.
func (r WorkloadsRequest) CheckIDs() error {
	if len(r.IDs) > MaxPage {
		return fmt.Errorf("ids: there are %d, want %d at most", len(r.IDs), MaxPage)
	}
	return nil
}

// Place is a queue, or some namespaces of it.
type Place struct {
	Queue string `json:"queue"`
	// Namespaces of the queue; empty for all.
	Namespaces []string `json:"namespaces,omitempty"`
}

// Has reports whether a workload of a queue and namespace is of the place.
func (p Place) Has(queue, namespace string) bool {
	return p.Queue == queue && (len(p.Namespaces) == 0 || slices.Contains(p.Namespaces, namespace))
}

// WorkloadsAnswer is a page of workloads in the order of the request.
type WorkloadsAnswer struct {
	Workloads []workload.Record `json:"workloads"`
	// Next is the After of the following page in the order of submission, and not zero in any
	// order when there is one.
	Next int64 `json:"next,omitempty"`
	// Selected: the request has Labels, and they were considered.
	Selected bool `json:"selected,omitempty"`
}

// HistoryRequest asks for the life of one workload.
type HistoryRequest struct {
	ID workload.ID `json:"id"`
}

// HistoryAnswer lists what happened to a workload, oldest first.
type HistoryAnswer struct {
	Entries []HistoryEntry `json:"entries"`
	// Estimates are those that were made while it waited, oldest first: the first one, and
	// each that differed.
	Estimates []PastEstimate `json:"estimates,omitempty"`
}

// HistoryEntry is one change of a workload's phase or reason.
type HistoryEntry struct {
	At      time.Time        `json:"at"`
	Phase   workload.Phase   `json:"phase"`
	Attempt int              `json:"attempt"`
	Reason  *workload.Reason `json:"reason,omitempty"`
}

// QueuesAnswer lists all queues by name and namespace. Tenants get no more than their queues.
type QueuesAnswer struct {
	Queues []Queue `json:"queues"`
	// ClusterQueues are in the order of cohorts and names, with those that no queue leads to.
	ClusterQueues []ClusterQueue `json:"clusterQueues,omitempty"`
	// Cohorts has a parent before its children.
	Cohorts []quota.CohortUsage `json:"cohorts,omitempty"`
	// Flavors are in the order of the configuration.
	Flavors []quota.Flavor `json:"flavors,omitempty"`
	// PriorityClasses are in the order of the configuration.
	PriorityClasses []quota.PriorityClass `json:"priorityClasses,omitempty"`
	// Inactive has the ClusterQueues of which nothing is admitted although their manifests
	// are valid, and why; also those that no queue leads to.
	Inactive map[string]string `json:"inactive,omitempty"`
	// InactiveChecks has the AdmissionChecks that make every queue inactive which names them, and why.
	InactiveChecks map[string]string `json:"inactiveChecks,omitempty"`
}

// Queue is a queue and what is in it. LocalQueues of one name are queues of their own, each
// with its namespace; a queue of the queues file without LocalQueues has all of its namespaces.
type Queue struct {
	Name       string   `json:"name"`
	Namespaces []string `json:"namespaces"`
	Strategy   string   `json:"strategy"`
	Waiting    int      `json:"waiting"`
	// Provisioning are those of the waiting ones that hold quota while nodes, or AdmissionChecks, are asked.
	Provisioning int           `json:"provisioning,omitempty"`
	Live         int           `json:"live"`     // admitted, dispatched, running or being torn down
	Reserved     resource.List `json:"reserved"` // by its live workloads
	// ClusterQueue from whose quota its workloads are charged, and the cohort of
	// that.
	ClusterQueue string `json:"clusterQueue"`
	Cohort       string `json:"cohort,omitempty"`
	// StopPolicy is set while a manifest holds the queue: Hold or HoldAndDrain;
	// Deleting when its cluster deletes it.
	StopPolicy string `json:"stopPolicy,omitempty"`
	// Inactive is why nothing of the ClusterQueue is admitted although its manifest is
	// valid: it asks for what Muster does not do.
	Inactive string `json:"inactive,omitempty"`
	// Hold is set while an operator holds the queue, in one or all of its namespaces, and
	// ClusterQueueHold while he holds its ClusterQueue.
	Hold             *quota.QueueStop `json:"hold,omitempty"`
	ClusterQueueHold *quota.QueueStop `json:"clusterQueueHold,omitempty"`
	// Quota is what the ClusterQueue has and uses, by flavor and resource; empty
	// without quota.
	Quota []quota.Line `json:"quota,omitempty"`
	// Share is the weighted dominant share of the ClusterQueue in its cohort, in
	// millionths.
	Share quota.Share `json:"share,omitempty"`
	// Submitters may submit to the queue; empty for every submitter that NATS lets publish to it.
	Submitters []workload.Submitters `json:"submitters,omitempty"`
	// PastUse is by namespace, where the ClusterQueue orders its workloads by that.
	PastUse []workload.PastUse `json:"pastUse,omitempty"`
	// Budgets are those of the queue, with what was used of them.
	Budgets []Budget `json:"budgets,omitempty"`
	// Estimates is what came of the last estimates of the queue; absent before the first.
	Estimates *EstimateScore `json:"estimates,omitempty"`
}

// ForTenant returns the queue as a submitter sees it: with the namespaces that it may use,
// and without the names of others.
func (q Queue) ForTenant(submitter string) Queue {
	namespaces, every := workload.Rules{Submitters: q.Submitters}.NamespacesOf(submitter)
	q.Submitters = nil
	if every {
		return q
	}
	q.Namespaces = slices.DeleteFunc(slices.Clone(q.Namespaces), func(namespace string) bool { return !slices.Contains(namespaces, namespace) })
	q.PastUse = slices.DeleteFunc(slices.Clone(q.PastUse), func(past workload.PastUse) bool { return !slices.Contains(namespaces, past.Namespace) })
	q.Budgets = slices.DeleteFunc(slices.Clone(q.Budgets), func(b Budget) bool { return b.Namespace != "" && !slices.Contains(namespaces, b.Namespace) })
	return q
}

// ExplainRequest asks why a workload waits and what would admit it.
type ExplainRequest struct {
	ID workload.ID `json:"id"`
	// For is the submitter for whom a service asks, as in Workload.Submitter: he is
	// shown only workloads that he could have submitted, and nothing of the
	// workloads of other queues. Empty for an operator, who sees everything.
	For string `json:"for,omitempty"`
	// Certificate asks for a proof that the workload cannot start now, too.
	Certificate bool `json:"certificate,omitempty"`
}

// ExplainAnswer is the explanation of a workload.
type ExplainAnswer struct {
	workload.Explanation
	// Certificate proves that the workload cannot start now, if the request asked for it.
	// Where there is no proof, NoCertificate is why.
	Certificate   *certificate.Document `json:"certificate,omitempty"`
	NoCertificate string                `json:"noCertificate,omitempty"`
}

// Problem is the answer to a request that failed.
type Problem struct {
	Error string `json:"error"`
	// Busy: nothing is wrong with the request; it may be sent again later.
	Busy bool `json:"busy,omitempty"`
	// AfterSeconds is how long the same request is refused for, if that is known.
	AfterSeconds int `json:"afterSeconds,omitempty"`
}
