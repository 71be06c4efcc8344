package workload

import "time"

// SavedApart is how far two checkpoints are apart that are both noted. A workload that
// reports each second is not written to the ledger each second.
const SavedApart = 10 * time.Second

const (
	// savedScored is from how many checkpoints on the longest time between two of them
	// counts.
	savedScored = 4
	// savedCounted is up to how many checkpoints are counted.
	savedCounted = 1 << 16
)

// Saved is what a workload has reported about its checkpoints.
type Saved struct {
	// Attempt is the one of the last checkpoint, and At when that was, in whole seconds.
	Attempt int       `json:"attempt"`
	At      time.Time `json:"at"`
	// Count is how many were noted in all attempts, at most 65,536.
	Count int `json:"count"`
	// Longest is the longest time between two checkpoints of one attempt; zero before the
	// second.
	Longest Duration `json:"longest,omitzero"`
}

// Last returns when the attempt has saved its work last; zero when it has not reported that.
func (s *Saved) Last(attempt int) time.Time {
	if s == nil || s.Attempt != attempt {
		return time.Time{}
	}
	return s.At
}

// Next returns what is known with one more checkpoint, which is later than the last of its
// attempt.
func (s *Saved) Next(attempt int, at time.Time) *Saved {
	next := Saved{Attempt: attempt, At: at, Count: 1}
	if s == nil {
		return &next
	}
	next.Count, next.Longest = min(s.Count+1, savedCounted), s.Longest
	if last := s.Last(attempt); !last.IsZero() {
		next.Longest = max(next.Longest, Duration(at.Sub(last)))
	}
	return &next
}

// Interval returns the interval in which the workload is taken to save its work: the declared
// one, or the longest time between two checkpoints where enough were seen and that is less.
// Nothing that is reported makes it longer.
func (s *Saved) Interval(declared Seconds) Duration {
	if s == nil || s.Count < savedScored || s.Longest <= 0 {
		return declared.Duration()
	}
	return min(declared.Duration(), s.Longest)
}
