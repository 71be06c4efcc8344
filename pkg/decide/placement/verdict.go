package placement

import (
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// Outcome of a search.
type Outcome string

// The outcomes. Unknown means that the budget was spent; it must never be shown
// as "does not fit".
const (
	Fits       Outcome = "fits"
	DoesNotFit Outcome = "does not fit"
	Unknown    Outcome = "unknown"
)

// Verdict is the answer of Solve.
type Verdict struct {
	Outcome Outcome
	// Placements has, when the gang fits, a place for each of its pods: in the
	// order of its pod sets, then of node names.
	Placements []workload.Placement
	// Certificate is, when the gang does not fit, why it cannot.
	Certificate *Certificate
	// Steps of exact search that were taken.
	Steps int
}

// Proof is how a certificate can be verified.
type Proof string

// The proofs. Package certificate verifies them.
const (
	// Counted: the nodes take fewer pods of the one pod set than it has, each
	// node on its own and rules on domains aside.
	Counted Proof = "counted"
	// Summed: the pod sets ask more of Resource than is free in sum on the nodes
	// that take a pod of any of them.
	Summed Proof = "summed"
	// Searched: every way to place the pod sets has been ruled out.
	Searched Proof = "searched"
)

// Certificate is why a gang cannot fit: these pod sets cannot all be placed,
// whatever becomes of its others.
type Certificate struct {
	Proof    Proof
	PodSets  []string
	Room     int           // Counted: how many pods of the set the nodes take
	Resource resource.Name // Summed
	// Shortage explains DoesNotFit to the user.
	Shortage workload.Shortage
}

// Reason returns the reason that the verdict gives a user; nil when the gang fits.
func (v Verdict) Reason() *workload.Reason {
	switch v.Outcome {
	case Fits:
		return nil
	case DoesNotFit:
		reason := &workload.Reason{
			Kind: workload.ReasonFit, Message: sentence(&v.Certificate.Shortage), Shortage: &v.Certificate.Shortage,
		}
		if v.Certificate.Shortage.Constraint != "" {
			reason.Kind = workload.ReasonTopology
		}
		return reason
	}
	return &workload.Reason{
		Kind:    workload.ReasonUnknown,
		Message: "undecided: the search for places for all pods together reached its limit of steps; it is repeated when capacity changes",
	}
}
