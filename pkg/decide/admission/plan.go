package admission

import (
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// Plan is the result of a decision. The state has it applied already: a caller that
// cannot carry the plan out has to build a new state.
type Plan struct {
	Admissions []Admission
	// Growths are started gangs that get more places, with all places of each.
	Growths   []Admission
	Evictions []Eviction
	// Shrinks are started gangs that give up pods above their minimum, in place of evictions.
	Shrinks []Shrink
	// Asks are the waiting workloads for which nodes are to be asked for.
	Asks []Ask
	// Checks are the waiting workloads that are to be put to AdmissionChecks.
	Checks []ToCheck
	// Withdrawals are waiting workloads that may not hold their quota any more while they wait
	// for nodes or checks, and why. The state has dropped them; the caller withdraws the
	// request, and enqueues them again.
	Withdrawals []Wait
	// Waits are the new reasons of workloads that do not start. Of an equivalence
	// class only the first gang is named; State.Reason has the reason of each workload.
	Waits []Wait
	// NextAt is the earliest time at which a decision may differ without any event;
	// zero for none.
	NextAt time.Time
}

// Admission starts a workload with a node for each of its pods.
type Admission struct {
	Workload   workload.ID
	Cluster    string
	Placements []workload.Placement
	Flavors    []workload.PodSetFlavors
	// PodSets are those with which it starts, where these are fewer pods than were submitted,
	// or ask for defaults of their namespace; nil for those that were submitted.
	PodSets []workload.PodSet
}

// Eviction stops a started workload.
type Eviction struct {
	Workload workload.ID
	Reason   workload.Reason // of the kind Preempted or Drained
}

// Shrink has a started workload give up pods.
type Shrink struct {
	Workload workload.ID
	PodSets  []workload.PodSet    // Count is by how many each becomes smaller
	Leave    []workload.Placement // where the pods are that go
	Reason   workload.Reason
}

// Wait is why a workload does not start now.
type Wait struct {
	Workload workload.ID
	Reason   workload.Reason
}

func (d *decision) evict(g *Started, why workload.Reason) {
	g.Terminating = true
	if why.Preemption == nil { // for no other workload
		cost := d.state.evictionCost(g, d.now)
		why.Preemption = &workload.PreemptionCause{Cost: &cost}
		why.Message += "; " + cost.Message()
	}
	d.plan.Evictions = append(d.plan.Evictions, Eviction{g.Workload.ID, why})
}

func (d *decision) wait(w *Waiting, why *workload.Reason) {
	d.plan.Waits = append(d.plan.Waits, Wait{w.Workload.ID, *why})
	w.Never = why.Kind == workload.ReasonNeverFits
}
