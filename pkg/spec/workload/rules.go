package workload

import (
	"time"

	"muster.dev/muster/pkg/spec/fault"
)

// Placement modes of a queue.
const (
	// Pinned: pods wait at a scheduling gate until they may start, and are then
	// bound to exactly the reserved nodes.
	Pinned = "pinned"
	// Trusted: pods have no gate and no pin; the scheduler places them, Muster
	// counts what lands elsewhere.
	Trusted = "trusted"
)

// Rules are a queue's rules for the lives of its workloads.
type Rules struct {
	Life
	// Requeues is how often a gang that did not become ready, or lost pods, is
	// queued again; then it has failed. Losing a node does not count.
	Requeues *int `json:"requeues,omitempty"`
	// BackoffFirst is the wait before the first of them, doubled each time up to
	// BackoffMost.
	BackoffFirst Duration `json:"backoffFirst,omitzero"`
	BackoffMost  Duration `json:"backoffMost,omitzero"`
	// ForceAfter is how long after its grace a pod that does not end is deleted by
	// force.
	ForceAfter Duration `json:"forceAfter,omitzero"`
	// KeepFinished is how long the cluster of a finished job may stay when
	// nothing else removes it; it is charged so long.
	KeepFinished Duration `json:"keepFinished,omitzero"`
	// Placement is Pinned or Trusted.
	Placement string `json:"placement,omitempty"`
	// Limits are what a workload may ask for, at most.
	Limits Limits `json:"limits,omitzero"`
	// Pods is what pod templates may contain.
	Pods PodPolicy `json:"podPolicy,omitzero"`
	// Objects is which objects are created for workloads.
	Objects ObjectPolicy `json:"objectPolicy,omitzero"`
	// Submitters may submit to the queue; empty for every submitter that NATS lets publish to it.
	Submitters []Submitters `json:"submitters,omitempty"`
	// Identities bind submitters of messages to users of Kubernetes, whose rights
	// are asked for each object.
	Identities []Bound `json:"identities,omitempty"`
	// Strays is CountStrays, WarnOfStrays or EvictStrays.
	Strays string `json:"strayPods,omitempty"`
	// OnLostCluster is StayInLostCluster or FailOver.
	OnLostCluster string `json:"onLostCluster,omitempty"`
	// HomeObjects is WaitAtHome or MoveFromHome.
	HomeObjects string `json:"homeObjects,omitempty"`
	// PreferClusters selects the clusters that gangs prefer that prefer none themselves.
	PreferClusters ClusterSelector `json:"preferClusters,omitempty"`
	// Carries are the objects of clusters that gangs get copies of in others.
	Carries []Carried `json:"carries,omitempty"`
}

// Defaults of a queue's rules.
const (
	DefaultReadyDeadline = 15 * time.Minute
	DefaultRequeues      = 5
	DefaultBackoffFirst  = 10 * time.Second
	DefaultBackoffMost   = 30 * time.Minute
	DefaultForceAfter    = time.Minute
	DefaultKeepFinished  = time.Hour
)

// WithDefaults fills in what is not set.
func (r Rules) WithDefaults() Rules {
	fill := func(field *Duration, value time.Duration) {
		if *field == 0 {
			*field = Duration(value)
		}
	}
	fill(&r.ReadyDeadline, DefaultReadyDeadline)
	fill(&r.BackoffFirst, DefaultBackoffFirst)
	fill(&r.BackoffMost, max(DefaultBackoffMost, time.Duration(r.BackoffFirst)))
	fill(&r.ForceAfter, DefaultForceAfter)
	fill(&r.KeepFinished, DefaultKeepFinished)
	if r.Requeues == nil {
		requeues := DefaultRequeues
		r.Requeues = &requeues
	}
	if r.OnPodLoss == 0 {
		r.OnPodLoss = HealOnLoss
	}
	if r.Start == 0 {
		r.Start = StartEarly
	}
	if r.Placement == "" {
		r.Placement = Pinned
	}
	return r
}

// Validate returns what of the rules, with their defaults, cannot be, as a
// fault.List.
func (r Rules) Validate() error {
	r = r.WithDefaults()
	var faults fault.List
	if r.Placement != Pinned && r.Placement != Trusted {
		faults.Add("placement", "%q: want %s or %s", r.Placement, Pinned, Trusted)
	}
	if *r.Requeues < 0 {
		faults.Add("requeues", "%d: want 0 or more", *r.Requeues)
	}
	if r.Tolerance != nil {
		faults.Add("tolerance", "is for a workload to ask for; want requeues, backoffFirst, backoffMost and forceAfter")
	}
	if r.Moves {
		faults.Add("moves", "is for an object to ask for; want homeObjects: move beside life")
	}
	if r.BackoffMost < r.BackoffFirst {
		faults.Add("backoffMost", "%s is less than backoffFirst, which is %s; want at least that",
			time.Duration(r.BackoffMost), time.Duration(r.BackoffFirst))
	}
	faults.Under("submitters", ValidateSubmitters(r.Submitters))
	faults.Under("limits", r.ValidateLimits())
	return faults.Err()
}

// For returns the rules for a workload that asks for a life of its own, within the
// queue's limits.
func (r Rules) For(asked Life) Rules {
	r = r.WithDefaults()
	limits := r.limits()
	if asked.ReadyDeadline > 0 {
		r.ReadyDeadline = asked.ReadyDeadline
	}
	if asked.OnPodLoss != 0 {
		r.OnPodLoss = asked.OnPodLoss
	}
	if asked.Start != 0 {
		r.Start = asked.Start
	}
	if asked.CheckpointGrace > 0 {
		r.CheckpointGrace = asked.CheckpointGrace
	}
	if asked.CheckpointInterval > 0 {
		r.CheckpointInterval = asked.CheckpointInterval
	}
	if asked.MaxRunTime > 0 {
		r.MaxRunTime = asked.MaxRunTime
	}
	if asked.IdleTime > 0 {
		r.IdleTime = asked.IdleTime
	}
	if asked.RunTime > 0 {
		r.RunTime = asked.RunTime
	}
	if t := asked.Tolerance; t != nil {
		r.Tolerance = t
		if t.Retries != nil {
			r.Requeues = t.Retries
		}
		if t.Pause > 0 {
			r.BackoffFirst, r.BackoffMost = t.Pause, t.Pause
		}
		if t.ForceAfter > 0 {
			r.ForceAfter = t.ForceAfter
		}
	}
	return r.within(limits)
}

// HealWithin is how long a gang may take from the loss of a pod until all its pods
// are ready again.
func (r Rules) HealWithin() time.Duration {
	if r.Tolerance != nil && r.Tolerance.LossDeadline > 0 {
		return time.Duration(r.Tolerance.LossDeadline)
	}
	return time.Duration(r.ReadyDeadline)
}

// Declared is the declared run time of a workload that asks for a life of its
// own: as it says, else as its queue has it, and never more than after which it is
// ended. Zero means that it is not known.
func (r Rules) Declared(asked Life) time.Duration {
	if asked.RunTime == 0 {
		asked.RunTime = r.RunTime
	}
	asked.MaxRunTime = r.For(asked).MaxRunTime
	if asked.RunTime == 0 || asked.MaxRunTime > 0 && asked.MaxRunTime < asked.RunTime {
		return time.Duration(asked.MaxRunTime)
	}
	return time.Duration(asked.RunTime)
}

// Backoff is the wait before a workload is queued again for the nth time, from 1.
func (r Rules) Backoff(n int) time.Duration {
	r = r.WithDefaults()
	wait, most := time.Duration(r.BackoffFirst), time.Duration(r.BackoffMost)
	for range n - 1 {
		if wait >= most/2 {
			return most
		}
		wait *= 2
	}
	return min(wait, most)
}
