package quota

import (
	"muster.dev/muster/pkg/spec/capacity"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Config is all of the policy. Its JSON names fields as Kueue's manifests do.
type Config struct {
	Flavors       []Flavor        `json:"resourceFlavors,omitempty"`
	Cohorts       []Cohort        `json:"cohorts,omitempty"`
	ClusterQueues []ClusterQueue  `json:"clusterQueues,omitempty"`
	LocalQueues   []LocalQueue    `json:"localQueues,omitempty"`
	Priorities    []PriorityClass `json:"workloadPriorityClasses,omitempty"`
	// AdmissionChecks are those that ClusterQueues may name.
	AdmissionChecks []AdmissionCheck `json:"admissionChecks,omitempty"`
	// ProvisioningConfigs are how AdmissionChecks of ProvisioningController request nodes.
	ProvisioningConfigs []ProvisioningConfig `json:"provisioningRequestConfigs,omitempty"`
	// Topologies are those that flavors may name.
	Topologies []Topology `json:"topologies,omitempty"`
	// Holds are queues that operators hold.
	Holds []QueueStop `json:"queueHolds,omitempty"`
	// ClusterQueueHolds are ClusterQueues that operators hold.
	ClusterQueueHolds []QueueStop `json:"clusterQueueHolds,omitempty"`
	// Clusters describes those among which Muster chooses.
	Clusters []Cluster `json:"clusters,omitempty"`
	// ClusterCordons are clusters in which operators let nothing be admitted.
	ClusterCordons []ClusterCordon `json:"clusterCordons,omitempty"`
	// Reservations keep nodes free for some time.
	Reservations []Reservation `json:"reservations,omitempty"`
	// Budgets bound what queues use in a period.
	Budgets []Budget `json:"budgets,omitempty"`
	// BudgetHolds are queues whose budgets are used up.
	BudgetHolds []BudgetStop `json:"budgetHolds,omitempty"`
	// FairSharing orders the ClusterQueues of a cohort by their weighted dominant
	// share; without it priority and submission decide across queues, too.
	FairSharing *FairSharingPolicy `json:"fairSharing,omitempty"`
	// AdmissionFairSharing is how the past use of LocalQueues counts; nil: not at all.
	AdmissionFairSharing *AdmissionFairSharing `json:"admissionFairSharing,omitempty"`
}

// FairSharingPolicy is fair sharing for the whole of Muster.
type FairSharingPolicy struct {
	Enable bool `json:"enable"`
	// PreemptionStrategies are tried in order; empty means both of Kueue's, in
	// the order LessThanOrEqualToFinalShare, LessThanInitialShare.
	PreemptionStrategies []string `json:"preemptionStrategies,omitempty"`
	// UsageHalfLifeSeconds makes past use count: what a queue used so long ago
	// weighs half. Zero means that only present use counts.
	UsageHalfLifeSeconds int64 `json:"usageHalfLifeSeconds,omitempty"`
}

// Strategies of preemption under fair sharing, as Kueue names them.
const (
	LessThanOrEqualToFinalShare = "LessThanOrEqualToFinalShare"
	LessThanInitialShare        = "LessThanInitialShare"
)

// Flavor is a kind of node that quota is given for (Kueue's ResourceFlavor).
type Flavor struct {
	Name string `json:"name"`
	// NodeLabels are on every node of the flavor; pods that are given the flavor
	// go to such nodes only.
	NodeLabels map[string]string `json:"nodeLabels,omitempty"`
	// NodeTaints are on every node of the flavor; only pod sets that tolerate them
	// may be given it.
	NodeTaints []capacity.Taint `json:"nodeTaints,omitempty"`
	// Tolerations are added to the pods that are given the flavor.
	Tolerations []workload.Toleration `json:"tolerations,omitempty"`
	// Cost is the price of resources for an hour. Muster's own.
	Cost Cost `json:"costPerHour,omitempty"`
	// TopologyName names the Topology of the nodes; without one each label of nodes is a level of its own.
	TopologyName string `json:"topologyName,omitempty"`
}

// Strategies of a ClusterQueue. Backfill is Muster's own.
const (
	StrictFIFO     = "StrictFIFO"
	BestEffortFIFO = "BestEffortFIFO"
	Backfill       = "Backfill"
)

// ClusterQueue is a queue with its quota.
type ClusterQueue struct {
	Name string `json:"name"`
	// Cohort groups queues that may borrow from each other; empty for none.
	Cohort string `json:"cohortName,omitempty"`
	// ResourceGroups give the quota. Without any, the queue is bounded by the
	// clusters alone.
	ResourceGroups []ResourceGroup `json:"resourceGroups,omitempty"`
	// QuotaCheckStrategy is what resources count as that no group covers:
	// BlockUndeclared (Kueue's and the default: none may be used) or
	// IgnoreUndeclared (bounded by the clusters alone). Pod slots (resource
	// "pods") count only where they are covered.
	QuotaCheckStrategy string             `json:"quotaCheckStrategy,omitempty"`
	Strategy           string             `json:"queueingStrategy,omitempty"` // BestEffortFIFO if empty
	Fungibility        *FlavorFungibility `json:"flavorFungibility,omitempty"`
	Preemption         *Preemption        `json:"preemption,omitempty"`
	// Backfill settles how a queue with that strategy is passed, and until when the head
	// of a BestEffortFIFO queue is. Muster's own.
	Backfill    *BackfillPolicy `json:"backfill,omitempty"`
	FairSharing *FairSharing    `json:"fairSharing,omitempty"`
	StopPolicy  string          `json:"stopPolicy,omitempty"` // None if empty
	// AdmissionScope orders the workloads by the past use of their LocalQueues; nil: not.
	AdmissionScope *AdmissionScope `json:"admissionScope,omitempty"`
	// NamespaceSelector selects the namespaces that may use the queue, by their labels. Unlike
	// in Kueue all may when it is missing.
	NamespaceSelector *LabelSelector `json:"namespaceSelector,omitempty"`
	// The checks are Kueue's. What of them Muster does not do makes the queue inactive.
	AdmissionChecks []string        `json:"admissionChecks,omitempty"`
	ChecksStrategy  *ChecksStrategy `json:"admissionChecksStrategy,omitempty"`
}

// How resources count that a ClusterQueue with quota does not declare.
const (
	BlockUndeclared  = "BlockUndeclared"
	IgnoreUndeclared = "IgnoreUndeclared"
)

// Stop policies.
const (
	StopNone     = "None"
	Hold         = "Hold"         // nothing new is admitted
	HoldAndDrain = "HoldAndDrain" // and what was admitted is evicted
	// Deleting is Hold for an object that its cluster is deleting. No manifest may have it.
	Deleting = "Deleting"
)

// ResourceGroup is a set of resources that always come from the same flavor, and
// the flavors in the order in which they are tried.
type ResourceGroup struct {
	CoveredResources []resource.Name `json:"coveredResources"`
	Flavors          []FlavorQuotas  `json:"flavors"`
}

// FlavorQuotas is the quota of one flavor.
type FlavorQuotas struct {
	Name      string          `json:"name"`
	Resources []ResourceQuota `json:"resources"`
}

// ResourceQuota is the quota of one resource of a flavor, in the units of
// resource.List. In JSON amounts are Kubernetes quantities.
type ResourceQuota struct {
	Name    resource.Name
	Nominal int64
	// BorrowingLimit bounds what is used beyond the nominal quota, LendingLimit
	// what others may use of it; nil for no bound.
	BorrowingLimit *int64
	LendingLimit   *int64
}

// FlavorFungibility is when the next flavor is tried although this one would
// do with borrowing or preemption.
type FlavorFungibility struct {
	WhenCanBorrow  string `json:"whenCanBorrow,omitempty"`  // MayStopSearch (default) or TryNextFlavor
	WhenCanPreempt string `json:"whenCanPreempt,omitempty"` // TryNextFlavor (default) or MayStopSearch
	// Preference chooses, where no flavor ends the search, between one that borrows and
	// one that needs preemption. BorrowingOverPreemption takes the one that borrows from
	// nearer by, PreemptionOverBorrowing (also without a preference) one within quota.
	Preference string `json:"preference,omitempty"`
	// WhenNotProvisioned is what follows a request for nodes that fails: MayStopSearch (the
	// default) asks for the same again after a back-off, TryNextFlavor first goes on to the
	// queue's next flavor. With it a request that is not provisioned within
	// ProvisionWithinSeconds counts as one that failed; zero waits. Muster's own.
	WhenNotProvisioned     string `json:"whenNotProvisioned,omitempty"`
	ProvisionWithinSeconds int64  `json:"provisionWithinSeconds,omitempty"`
	// WhenEqual chooses between flavors that are alike in all of the above: FirstListed (the
	// default, as in Kueue) or LowestCost. Muster's own.
	WhenEqual string `json:"whenEqual,omitempty"`
}

// Values of FlavorFungibility. Borrow and Preempt are the older names of
// MayStopSearch.
const (
	MayStopSearch = "MayStopSearch"
	TryNextFlavor = "TryNextFlavor"
	// Values of the preference, as Kueue names them.
	BorrowingOverPreemption = "BorrowingOverPreemption"
	PreemptionOverBorrowing = "PreemptionOverBorrowing"

	// Values of WhenEqual.
	FirstListed = "FirstListed"
	LowestCost  = "LowestCost"

	borrowAlias  = "Borrow"
	preemptAlias = "Preempt"
)

// Preemption is whom a ClusterQueue's workloads may evict.
type Preemption struct {
	WithinClusterQueue  string              `json:"withinClusterQueue,omitempty"`
	ReclaimWithinCohort string              `json:"reclaimWithinCohort,omitempty"`
	BorrowWithinCohort  *BorrowWithinCohort `json:"borrowWithinCohort,omitempty"`
	// MinRunSeconds protects workloads of this queue from preemption for so long
	// after their admission. Muster's own.
	MinRunSeconds int64 `json:"minRunSeconds,omitempty"`
}

// BorrowWithinCohort lets workloads that have to borrow evict those of others.
type BorrowWithinCohort struct {
	Policy string `json:"policy,omitempty"` // Never (default) or LowerPriority
	// MaxPriorityThreshold: only workloads of at most this priority are evicted.
	MaxPriorityThreshold *int32 `json:"maxPriorityThreshold,omitempty"`
}

// Preemption policies.
const (
	Never                     = "Never"
	LowerPriority             = "LowerPriority"
	LowerOrNewerEqualPriority = "LowerOrNewerEqualPriority"
	Any                       = "Any"
)

// FairSharing is the weight of a ClusterQueue or Cohort among its siblings.
type FairSharing struct {
	// WeightMilli is the weight times 1000; JSON has it as quantity "weight".
	WeightMilli int64
}

// Cohort is a group of ClusterQueues and Cohorts that lend to each other.
type Cohort struct {
	Name           string          `json:"name"`
	Parent         string          `json:"parentName,omitempty"`
	ResourceGroups []ResourceGroup `json:"resourceGroups,omitempty"`
	FairSharing    *FairSharing    `json:"fairSharing,omitempty"`
}

// LocalQueue lets a namespace submit to a ClusterQueue.
type LocalQueue struct {
	Namespace    string `json:"namespace"`
	Name         string `json:"name"`
	ClusterQueue string `json:"clusterQueue"`
	StopPolicy   string `json:"stopPolicy,omitempty"`
	// FairSharing is its weight among the LocalQueues of a ClusterQueue with an
	// AdmissionScope; one without it.
	FairSharing *FairSharing `json:"fairSharing,omitempty"`
}
