package workload

import (
	"slices"
	"time"

	"muster.dev/muster/pkg/spec/resource"
)

// ReasonKind classifies why a workload is where it is.
type ReasonKind string

// The kinds of reasons.
const (
	ReasonFit      ReasonKind = "Fit"      // some pod of the gang has no node
	ReasonQuota    ReasonKind = "Quota"    // more than the quota of its queue allows
	ReasonTopology ReasonKind = "Topology" // there is room, but not within the topology that it requires
	// ReasonNeverFits: no node offers so much even when empty, its queue can never have so
	// much, or no cluster serves the kinds of its objects; it waits until that changes.
	ReasonNeverFits ReasonKind = "NeverFits"
	ReasonHeld      ReasonKind = "Held" // it is held, or its queue
	// ReasonWaitingForEviction: gangs are being evicted for it, and what they free
	// is reserved for it.
	ReasonWaitingForEviction ReasonKind = "WaitingForEviction"
	ReasonProvisioning       ReasonKind = "Provisioning"   // nodes are asked for, and its quota is reserved
	ReasonAdmissionCheck     ReasonKind = "AdmissionCheck" // an AdmissionCheck of its queue has not agreed
	ReasonCheckRetry         ReasonKind = "CheckRetry"     // an AdmissionCheck is to be asked again later
	ReasonCheckRejected      ReasonKind = "CheckRejected"  // an AdmissionCheck has rejected it
	ReasonPreempted          ReasonKind = "Preempted"      // evicted for another workload
	ReasonDrained            ReasonKind = "Drained"        // its queue, or a node that it has pods on, is drained
	ReasonShrunk             ReasonKind = "Shrunk"         // gives up pods above its minimum for another workload
	ReasonRequeued           ReasonKind = "Requeued"       // evicted because an operator, or its submitter, asked for it
	ReasonBehindHead         ReasonKind = "BehindHead"     // no gang passes the head of its queue, or it would delay a head
	ReasonReserved           ReasonKind = "Reserved"       // nodes that it needs are reserved, and it is not declared to end before
	ReasonUnknown            ReasonKind = "Unknown"        // the search for places ended without an answer
	ReasonPending            ReasonKind = "Pending"        // the next decision considers it
	ReasonNoNodes            ReasonKind = "NoNodes"        // no cluster has a node, or none takes it now
	ReasonStarting           ReasonKind = "Starting"       // KubeRay cannot create all its pods, or none starts
	ReasonNodeLost           ReasonKind = "NodeLost"       // a node was gone or not ready for too long; it starts again
	ReasonClusterLost        ReasonKind = "ClusterLost"    // its cluster is gone, or may run nothing any more; it starts again elsewhere
	ReasonClusterSilent      ReasonKind = "ClusterSilent"  // its cluster does not report; it keeps its places
	ReasonPlaceLost          ReasonKind = "PlaceLost"      // a reserved place is taken or barred; before the start others are reserved instead
	ReasonPodLost            ReasonKind = "PodLost"        // a pod of the running gang is lost
	ReasonNodeNotReady       ReasonKind = "NodeNotReady"   // it runs, and a node with pods of it is not ready
	ReasonHeadReplaced       ReasonKind = "HeadReplaced"   // it runs, and its head pod was replaced, with which Ray lost its state
	ReasonGrowing            ReasonKind = "Growing"        // it runs, and more pods of it wait for places
	ReasonNotReady           ReasonKind = "NotReady"       // not all pods were ready within the deadline
	ReasonNotCreated         ReasonKind = "NotCreated"     // its object, or every pod of it, was not created within the deadline
	ReasonBackoff            ReasonKind = "Backoff"        // queued again, and not to be tried before a time
	ReasonMaxRunTime         ReasonKind = "MaxRunTime"     // it reached its maxRunTime
	ReasonIdle               ReasonKind = "Idle"           // it was idle for its idleTime
	ReasonRestored           ReasonKind = "Restored"       // the database was restored to a state older than what was done
	// ReasonPermissionEnded: the permission of its cluster to run it has run out. It is stopped
	// there, and starts again elsewhere.
	ReasonPermissionEnded ReasonKind = "PermissionEnded"
	// ReasonBesidePlan: it runs, some pods on other nodes than are reserved for them.
	ReasonBesidePlan ReasonKind = "BesidePlan"
	ReasonExitCode   ReasonKind = "ExitCode"  // a container ended with a code after which it is not tried again
	ReasonCancelled  ReasonKind = "Cancelled" // a user asked for it
	ReasonReleased   ReasonKind = "Released"  // an operator freed its places by force
	ReasonDeleted    ReasonKind = "Deleted"   // its object was deleted, not by Muster
	ReasonRefused    ReasonKind = "Refused"   // Kubernetes or the dispatcher refused its object for good
	ReasonJobEnded   ReasonKind = "JobEnded"  // the Ray job came to its end
	ReasonInvalid    ReasonKind = "Invalid"   // the submission, or what was asked of the workload, is not acceptable
	ReasonDuplicate  ReasonKind = "Duplicate" // the id or the name is taken by another workload
	ReasonFull       ReasonKind = "Full"      // Muster, or the queue, has as many workloads as it may; try again later
	ReasonQueue      ReasonKind = "Queue"     // the queue is unknown or may not use the namespace
	// ReasonNotStorable: the database refuses what was decided about it.
	ReasonNotStorable ReasonKind = "NotStorable"
	ReasonForbidden   ReasonKind = "Forbidden" // its submitter may not, or may not any more
)

// ReasonKinds lists all kinds.
func ReasonKinds() []ReasonKind {
	return []ReasonKind{
		ReasonFit, ReasonQuota, ReasonTopology, ReasonNeverFits, ReasonHeld, ReasonWaitingForEviction, ReasonProvisioning, ReasonAdmissionCheck, ReasonCheckRetry, ReasonCheckRejected, ReasonPreempted, ReasonShrunk, ReasonDrained, ReasonRequeued,
		ReasonBehindHead, ReasonReserved, ReasonUnknown, ReasonPending, ReasonNoNodes, ReasonStarting, ReasonNodeLost, ReasonClusterLost, ReasonClusterSilent, ReasonPermissionEnded, ReasonPlaceLost, ReasonPodLost,
		ReasonNodeNotReady, ReasonHeadReplaced, ReasonGrowing, ReasonNotReady, ReasonNotCreated, ReasonBackoff, ReasonMaxRunTime, ReasonIdle, ReasonBesidePlan,
		ReasonExitCode, ReasonCancelled, ReasonReleased, ReasonDeleted, ReasonRefused, ReasonJobEnded, ReasonInvalid, ReasonDuplicate,
		ReasonFull, ReasonQueue, ReasonForbidden, ReasonRestored, ReasonNotStorable,
	}
}

// Reason is why, as data and as a sentence.
type Reason struct {
	Kind    ReasonKind `json:"kind"`
	Message string     `json:"message"`
	// Shortage is set for ReasonFit, and for ReasonNeverFits where nodes lack room.
	Shortage *Shortage `json:"shortage,omitempty"`
	// Quota is set for ReasonQuota, and for ReasonNeverFits where quota lacks.
	Quota *QuotaShortage `json:"quota,omitempty"`
	// Kinds are set for ReasonNeverFits where clusters do not serve the kinds of its objects:
	// of each cluster one.
	Kinds []ObjectKind `json:"kinds,omitempty"`
	// Preemption is set for ReasonWaitingForEviction, ReasonPreempted and ReasonShrunk, and,
	// with the cost alone, for ReasonDrained and ReasonRequeued.
	Preemption *PreemptionCause `json:"preemption,omitempty"`
	// Start is set for the head of a queue with a reservation, and for ReasonBehindHead in a
	// Backfill queue: the start that must not be delayed.
	Start *PlannedStart `json:"start,omitempty"`
	// Foreign lists the workloads named above that belong to other queues than the one
	// of the reason. Only operators see them: see ForTenant.
	Foreign []ID `json:"foreign,omitempty"`
}

// ForTenant returns the reason for those who may see the workload and
// not those of other queues. Messages never name these.
func (r *Reason) ForTenant() *Reason {
	if r != nil && r.Preemption != nil && r.Preemption.Choice != nil {
		c, p := *r, *r.Preemption
		p.Choice = nil
		c.Preemption = &p
		r = &c
	}
	if r == nil || len(r.Foreign) == 0 {
		return r
	}
	c := *r
	c.Foreign = nil
	if r.Preemption != nil {
		p := *r.Preemption
		p.Victims = without(p.Victims, r.Foreign)
		if slices.Contains(r.Foreign, p.Preemptor) {
			p.Preemptor = ""
		}
		c.Preemption = &p
	}
	if r.Start != nil {
		s := *r.Start
		s.After = without(s.After, r.Foreign)
		if slices.Contains(r.Foreign, s.Workload) {
			s.Workload = ""
		}
		c.Start = &s
	}
	return &c
}

func without(ids, foreign []ID) []ID {
	return slices.DeleteFunc(slices.Clone(ids), func(id ID) bool { return slices.Contains(foreign, id) })
}

// PlannedStart is the reservation in time of the head of a queue.
type PlannedStart struct {
	Workload ID `json:"workload"` // the head of the queue
	// By is its latest start, if the gangs it waits for keep to their declared run
	// times; zero when unknown.
	By time.Time `json:"by,omitzero"`
	// After are the gangs whose end it waits for, in the order of their ends.
	After   []ID     `json:"after,omitempty"`
	Cluster string   `json:"cluster"`
	Nodes   []string `json:"nodes"` // on which places are held
}

// QuotaShortage is the bound of quota that a gang meets first.
type QuotaShortage struct {
	Queue     string        `json:"queue"` // the ClusterQueue
	Flavor    string        `json:"flavor,omitempty"`
	Resource  resource.Name `json:"resource"`
	Asked     int64         `json:"asked"`     // of Resource, by the whole gang
	Available int64         `json:"available"` // to the queue, now
	Potential int64         `json:"potential"` // to the queue, if nothing were used
	Nominal   int64         `json:"nominal"`
	Used      int64         `json:"used"` // by the queue
	// Where the bound is: "clusterQueue NAME" or "cohort NAME"; Limit is which of
	// its bounds: "nominalQuota", "borrowingLimit", "flavors" (none matches the
	// pods) or "coveredResources" (the resource is not among them).
	Where string `json:"where"`
	Limit string `json:"limit"`
}

// PreemptionCause has the evicted workload, the preemptor and the policy. Of an eviction for
// no other workload it has the cost alone.
type PreemptionCause struct {
	Preemptor ID `json:"preemptor,omitempty"` // empty in the preemptor's own reason
	// Victims that are still there, in the preemptor's reason.
	Victims []ID `json:"victims,omitempty"`
	// Policy by which the victim was chosen: "withinClusterQueue",
	// "reclaimWithinCohort", "borrowWithinCohort" or "fairSharing".
	Policy string `json:"policy,omitempty"`
	// Cost is what the evicted workload loses.
	Cost *EvictionCost `json:"cost,omitempty"`
	// Cut: the search for the cheapest victims reached a bound, so there may be cheaper
	// ones.
	Cut bool `json:"cut,omitempty"`
	// Choice is what was compared. Only operators see it: see ForTenant.
	Choice *PreemptionChoice `json:"choice,omitempty"`
}

// PreemptionChoice compares the victims of a preemption with the best other set that was
// found.
type PreemptionChoice struct {
	// Victims has the first of them, VictimCount counts all.
	Victims     []ID         `json:"victims"`
	VictimCount int          `json:"victimCount"`
	Cost        EvictionCost `json:"cost"` // of all victims
	// Other would have been enough, too; empty when no other set was found.
	Other      []ID         `json:"other,omitempty"`
	OtherCount int          `json:"otherCount,omitempty"`
	OtherCost  EvictionCost `json:"otherCost,omitzero"`
	// By is what decided between the two: the first criterion in which they differ. It is empty
	// when both cost the same.
	By ChosenBy `json:"by,omitempty"`
	// Counted and OtherCounted are the seconds that were compared when lost work decided, of
	// the gangs of the level at which the two differ: the work since the admissions or, where a
	// checkpoint interval is in force, since the last checkpoints and at most that interval;
	// and the starts, each at most that interval, too.
	Counted      int64 `json:"counted,omitempty"`
	OtherCounted int64 `json:"otherCounted,omitempty"`
}

// ChosenBy is a criterion of the choice of victims.
type ChosenBy string

// The criteria.
const (
	ChosenByStrategy     ChosenBy = "strategy"     // of fair sharing: the second is for what the first cannot do
	ChosenByShare        ChosenBy = "share"        // those of queues with larger shares
	ChosenByQueue        ChosenBy = "queue"        // those of other queues before those of its own
	ChosenByCascade      ChosenBy = "cascade"      // no gang goes that would evict others in turn
	ChosenByUse          ChosenBy = "use"          // those of LocalQueues that have used more
	ChosenByPriority     ChosenBy = "priority"     // those of lower priority
	ChosenByAccelerators ChosenBy = "accelerators" // those that lose less work, in accelerator-seconds
	ChosenByPods         ChosenBy = "pods"         // the same in pod-seconds
	ChosenByGangs        ChosenBy = "gangs"        // the fewer
)

// Shortage is the binding constraint of a gang that does not fit.
type Shortage struct {
	PodSet   string `json:"podSet"`
	Pods     int    `json:"pods"`     // pods of the set
	Unplaced int    `json:"unplaced"` // of them without a node
	// Resource is what most eligible nodes lack; empty when no node is eligible
	// at all because of selectors, taints or readiness.
	Resource resource.Name `json:"resource,omitempty"`
	// Constraint is the rule that keeps the pods from a place, such as `one domain of
	// "rack"`, when resources alone would suffice.
	Constraint string `json:"constraint,omitempty"`
	Asked      int64  `json:"asked"`   // of Resource, per pod
	Largest    int64  `json:"largest"` // free on the best single eligible node
	Sum        int64  `json:"sum"`     // free over all eligible nodes
	Eligible   int    `json:"eligible"`
	Nodes      int    `json:"nodes"` // nodes looked at
	// Lacking is set when some eligible nodes have enough of Resource: each of them
	// lacks another one. It lists all lacking resources, Resource first.
	Lacking []Lack `json:"lacking,omitempty"`
	// Excluded counts the nodes that are not eligible, by cause:
	// "selector", "affinity", "taint {key: value}", "cordoned", "not ready", and "taint" for
	// rarer taints.
	Excluded map[string]int `json:"excluded,omitempty"`
}

// Lack is a resource of which some of the eligible nodes have less than a pod asks for.
type Lack struct {
	Resource resource.Name `json:"resource"`
	Asked    int64         `json:"asked"` // by a pod
	Nodes    int           `json:"nodes"` // that have less free
}
