package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Duration is a span of time that is written as Go writes it: "1m30s".
type Duration time.Duration

// MarshalJSON implements json.Marshaler.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(d).String())
}

// UnmarshalJSON implements json.Unmarshaler.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("%s is no duration; want a text such as \"10m\"", data)
	}
	parsed, err := ParseDuration(text)
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}

// longestDuration bounds what can be asked for, so that sums with it stay
// meaningful moments.
const longestDuration = 10 * 365 * 24 * time.Hour

// ParseDuration reads a duration that is not negative and at most ten years.
func ParseDuration(text string) (Duration, error) {
	parsed, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is no duration; want a number and a unit, such as 90s, 10m or 2h", text)
	case parsed < 0 || parsed > longestDuration:
		return 0, fmt.Errorf("%q is not between 0s and %s", text, longestDuration)
	}
	return Duration(parsed), nil
}

// What is done when a gang that has started loses a pod.
const (
	// HealOnLoss: KubeRay's replacement gets the lost pod's place, or another one
	// that is proven and then reserved instead; the gang is evicted when there is
	// none, or when it is not whole again within its ready deadline.
	HealOnLoss = "heal"
	// EvictOnLoss: the gang is torn down whole and queued again.
	EvictOnLoss = "evict"
)

// Life is what a workload asks of its life. A field that is empty or zero is as
// the queue has it.
type Life struct {
	// ReadyDeadline is how long a gang may take from the creation of its object,
	// or from the loss of a pod, until all its pods are ready.
	ReadyDeadline Duration `json:"readyDeadline,omitzero"`
	// OnPodLoss is HealOnLoss or EvictOnLoss.
	OnPodLoss string `json:"onPodLoss,omitempty"`
	// CheckpointGrace is the time between the announcement of an eviction that
	// could wait, such as a preemption, and the deletion.
	CheckpointGrace Duration `json:"checkpointGrace,omitzero"`
	// MaxRunTime ends the workload so long after all its pods were ready; zero
	// lets it run.
	MaxRunTime Duration `json:"maxRunTime,omitzero"`
	// RunTime is how long the workload is expected to hold its places, at most,
	// from its admission on. It is what Backfill plans with, and nothing is ended
	// for exceeding it; zero says that it is not known.
	RunTime Duration `json:"runTime,omitzero"`
}

// Placement modes of a queue.
const (
	// Pinned: pods wait at a scheduling gate until all of the gang exist, and are
	// then bound to exactly the reserved nodes.
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
	// ForceAfter is how long after its time a pod that does not go is deleted by
	// force.
	ForceAfter Duration `json:"forceAfter,omitzero"`
	// KeepFinished is how long the cluster of a finished job may stay when
	// nothing else removes it; it is charged so long.
	KeepFinished Duration `json:"keepFinished,omitzero"`
	// Placement is Pinned or Trusted.
	Placement string `json:"placement,omitempty"`
	// Pods is what pod templates may contain.
	Pods PodPolicy `json:"podPolicy,omitzero"`
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
	if r.OnPodLoss == "" {
		r.OnPodLoss = HealOnLoss
	}
	if r.Placement == "" {
		r.Placement = Pinned
	}
	return r
}

// Validate says what of the rules, with their defaults, cannot be.
func (r Rules) Validate() error {
	r = r.WithDefaults()
	var faults []error
	if r.OnPodLoss != HealOnLoss && r.OnPodLoss != EvictOnLoss {
		faults = append(faults, fmt.Errorf("onPodLoss: %q: want %s or %s", r.OnPodLoss, HealOnLoss, EvictOnLoss))
	}
	if r.Placement != Pinned && r.Placement != Trusted {
		faults = append(faults, fmt.Errorf("placement: %q: want %s or %s", r.Placement, Pinned, Trusted))
	}
	if *r.Requeues < 0 {
		faults = append(faults, fmt.Errorf("requeues: %d: want 0 or more", *r.Requeues))
	}
	if r.BackoffMost < r.BackoffFirst {
		faults = append(faults, fmt.Errorf("backoffMost: %s is less than backoffFirst, which is %s",
			time.Duration(r.BackoffMost), time.Duration(r.BackoffFirst)))
	}
	return errors.Join(faults...)
}

// For returns the rules for a workload that asks for a life of its own.
func (r Rules) For(asked Life) Rules {
	r = r.WithDefaults()
	if asked.ReadyDeadline > 0 {
		r.ReadyDeadline = asked.ReadyDeadline
	}
	if asked.OnPodLoss != "" {
		r.OnPodLoss = asked.OnPodLoss
	}
	if asked.CheckpointGrace > 0 {
		r.CheckpointGrace = asked.CheckpointGrace
	}
	if asked.MaxRunTime > 0 {
		r.MaxRunTime = asked.MaxRunTime
	}
	if asked.RunTime > 0 {
		r.RunTime = asked.RunTime
	}
	return r
}

// Declared is the declared run time of a workload that asks for a life of its
// own: as it says, else as its queue says, and never more than after which it is
// ended. Zero says that it is not known.
func (r Rules) Declared(asked Life) time.Duration {
	if asked.RunTime == 0 {
		asked.RunTime = r.RunTime
	}
	if asked.MaxRunTime == 0 {
		asked.MaxRunTime = r.MaxRunTime
	}
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
