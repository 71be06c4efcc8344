package query

import (
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// PastEstimate is when a workload was estimated to start, at some time.
type PastEstimate struct {
	MadeAt time.Time `json:"madeAt"`
	// P50 and P90 are the times by which it starts with that probability; zero where there
	// was no time, and Unknown is why.
	P50     time.Time `json:"p50,omitzero"`
	P90     time.Time `json:"p90,omitzero"`
	Unknown string    `json:"unknown,omitempty"`
}

// StartAfter returns when a workload started first after an estimate was made; zero if it has
// not, or its history is gone.
func (e PastEstimate) StartAfter(history []HistoryEntry) time.Time {
	for _, entry := range history {
		if entry.Phase == workload.Admitted && !entry.At.Before(e.MadeAt) {
			return entry.At
		}
	}
	return time.Time{}
}

// EstimateScore is what came of the first estimates of the last workloads of a queue that have
// started.
type EstimateScore struct {
	// Started is how many there are, up to 500.
	Started int `json:"started"`
	// P50Coverage and P90Coverage are the part of them that started by that time.
	P50Coverage float64 `json:"p50Coverage"`
	P90Coverage float64 `json:"p90Coverage"`
	// MedianErrorSeconds is the median distance of the start from the p50.
	MedianErrorSeconds float64 `json:"medianErrorSeconds"`
}
