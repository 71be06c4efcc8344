package workload

import "time"

// EndBy is what an expected end goes by.
type EndBy string

// What ends go by.
const (
	EndTornDown EndBy = "teardown" // it is being removed
	EndLimit    EndBy = "limit"    // its maximum run time, at which it is ended
	EndDeclared EndBy = "declared" // its declared run time, which it may exceed
	EndLearned  EndBy = "estimate" // the run times of similar workloads
)

// End is when a workload is expected to give back its places.
type End struct {
	// At is zero where nothing says when.
	At time.Time `json:"at,omitzero"`
	By EndBy     `json:"by,omitempty"`
}

// Before reports whether an end is known to come before another; an unknown one comes last.
func (e End) Before(other End) bool {
	return !e.At.IsZero() && (other.At.IsZero() || e.At.Before(other.At))
}

// ExpectedEnd is when a workload that holds places gives them back by what it declares and by its
// limit, the earlier of both.
func (r *Record) ExpectedEnd() End {
	if r.Phase.Final() || r.Phase == Evicting || r.Phase == Cancelling {
		at := r.EvictAt
		if at.IsZero() {
			at = r.Times.Finished
		}
		return End{At: at, By: EndTornDown}
	}
	var end End
	if d := time.Duration(r.Life.RunTime); d > 0 && !r.Times.Admitted.IsZero() {
		end = End{r.Times.Admitted.Add(d), EndDeclared}
	}
	if d := time.Duration(r.Life.MaxRunTime); d > 0 && !r.Times.Running.IsZero() {
		if limit := (End{r.Times.Running.Add(d), EndLimit}); limit.Before(end) {
			end = limit
		}
	}
	return end
}

// OrLearned returns what is expected at a moment, given when similar workloads ended: that where
// nothing else is known or what was declared is over, and where it comes first.
func (e End) OrLearned(at, now time.Time) End {
	learned := End{at, EndLearned}
	if e.By == EndTornDown || at.IsZero() {
		return e
	}
	if e.At.IsZero() || e.By == EndDeclared && !e.At.After(now) || learned.Before(e) {
		return learned
	}
	return e
}
