package workload

import "time"

// Estimate is when a workload that waits will start.
type Estimate struct {
	// MadeAt is the moment of the state from which it was made.
	MadeAt time.Time `json:"madeAt"`
	// P50 and P90 are when half, and nine of ten, of the workloads with such an estimate
	// have started. They are zero where no time can be estimated, and Unknown is why.
	P50 time.Time `json:"p50,omitzero"`
	P90 time.Time `json:"p90,omitzero"`
	// Unknown is why there is no time.
	Unknown string `json:"unknown,omitempty"`
	// Behind are workloads that hold places and whose end cannot be estimated, by their titles,
	// if there is no time because of them. Tenants do not see it.
	Behind []string `json:"behind,omitempty"`
}

// ForTenant returns the estimate without the names of other workloads.
func (e *Estimate) ForTenant() *Estimate {
	if e == nil || len(e.Behind) == 0 {
		return e
	}
	seen := *e
	seen.Behind = nil
	return &seen
}
