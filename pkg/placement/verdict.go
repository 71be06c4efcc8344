package placement

import "muster.dev/muster/pkg/workload"

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
	// Certificate says, when the gang does not fit, why it cannot.
	Certificate *Certificate
	// Steps of search that were taken.
	Steps int
}

// Certificate says why a gang cannot fit.
type Certificate struct {
	Shortage workload.Shortage
}

// Reason is what the user is told of a verdict, nil when the gang fits.
func (v Verdict) Reason() *workload.Reason {
	switch v.Outcome {
	case Fits:
		return nil
	case DoesNotFit:
		return &workload.Reason{
			Kind: workload.ReasonFit, Message: sentence(&v.Certificate.Shortage), Shortage: &v.Certificate.Shortage,
		}
	}
	return &workload.Reason{
		Kind:    workload.ReasonUnknown,
		Message: "no places were found for all pods together within the search budget; it is tried again when capacity changes",
	}
}

func doesNotFit(short *workload.Shortage) Verdict {
	return Verdict{Outcome: DoesNotFit, Certificate: &Certificate{Shortage: *short}}
}
