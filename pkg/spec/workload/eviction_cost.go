package workload

import (
	"strconv"
	"time"
)

// EvictionCost is what evictions lose, in seconds of each accelerator that the workloads
// have; of one without accelerators, in seconds of each pod.
type EvictionCost struct {
	// Lost since the last reported checkpoint or, without a report, since the admission.
	Lost int64 `json:"lost"`
	// Since is that time, of one workload; Checkpoint is true if it is a checkpoint.
	Since      time.Time `json:"since,omitzero"`
	Checkpoint bool      `json:"checkpoint,omitempty"`
	// Restart is what a start takes from the admission until all pods are ready: the mean of
	// such workloads of the queue where enough were seen, else what its last start took; zero
	// while unknown. Return is the mean wait of evicted ones until they are admitted again;
	// zero where too few were seen.
	Restart int64 `json:"restart,omitempty"`
	Return  int64 `json:"return,omitempty"`
	// Unit is what the seconds are of; UnitBoth in a sum over workloads with accelerators and
	// such without. It is empty in reasons of versions that did not have it.
	Unit CostUnit `json:"unit,omitempty"`
}

// CostUnit is what the seconds of a cost are of.
type CostUnit string

// The units.
const (
	UnitAccelerators CostUnit = "accelerators"
	UnitPods         CostUnit = "pods"
	UnitBoth         CostUnit = "both"
)

// Seconds words the unit.
func (u CostUnit) Seconds() string {
	switch u {
	case UnitPods:
		return "pod-seconds"
	case UnitAccelerators:
		return "accelerator-seconds"
	}
	return "seconds of accelerators or, without any, of pods"
}

// Message words what the eviction of one workload loses.
func (c EvictionCost) Message() string {
	since := "admission"
	if c.Checkpoint {
		since = "last checkpoint at " + c.Since.UTC().Format(time.RFC3339)
	}
	text := "it loses " + strconv.FormatInt(c.Lost, 10) + " " + c.Unit.Seconds() + " since its " + since
	if c.Restart > 0 {
		text += ", about " + strconv.FormatInt(c.Restart, 10) + " in its next start"
	}
	if c.Return > 0 {
		text += ", and about " + strconv.FormatInt(c.Return, 10) + " in the wait for that"
	}
	return text
}
