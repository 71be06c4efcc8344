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
	// Longest is the longest time between two checkpoints of one attempt, and no longer than
	// between their reports; zero before the second.
	Longest Duration `json:"longest,omitzero"`
	// Reported is when the last checkpoint was reported, in whole seconds. Future is a time to
	// come that the attempt has reported; it is zero for none.
	Reported time.Time `json:"reported,omitzero"`
	Future   time.Time `json:"future,omitzero"`
}

// Last returns when the attempt has saved its work last; zero when it has not reported that.
func (s *Saved) Last(attempt int) time.Time {
	if s == nil || s.Attempt != attempt {
		return time.Time{}
	}
	return s.At
}

// HasCome reports whether a time to come was reported of the attempt before.
func (s *Saved) HasCome(attempt int, at time.Time) bool {
	return s != nil && s.Attempt == attempt && !s.Future.IsZero() && s.Future.Equal(at.Truncate(time.Second))
}

// Next returns what is known with one more checkpoint, which is later than the last of its
// attempt. A time after its report is one to come, and counts as that of the report.
func (s *Saved) Next(attempt int, at, reported time.Time) *Saved {
	at, reported = at.UTC().Truncate(time.Second), reported.UTC().Truncate(time.Second) // as they are read from Postgres
	next := Saved{Attempt: attempt, At: at, Count: 1, Reported: reported}
	if at.After(reported) {
		next.At, next.Future = reported, at
	}
	if s == nil {
		return &next
	}
	next.Count, next.Longest = min(s.Count+1, savedCounted), s.Longest
	if last := s.Last(attempt); !last.IsZero() {
		apart := min(next.At.Sub(last), reported.Sub(s.Reported)) // the first of the two may be backdated
		next.Longest = max(next.Longest, Duration(apart))
		if next.Future.IsZero() {
			next.Future = s.Future
		}
	}
	return &next
}

// Interval returns the interval in which the workload is taken to save its work: the declared
// one, or the longest time between two checkpoints where enough were seen and that is less. It is
// never more than the declared one, which is what silence is worth. A report makes it longer only
// after a silence that was longer.
func (s *Saved) Interval(declared Seconds) Duration {
	if s == nil || s.Count < savedScored || s.Longest <= 0 {
		return declared.Duration()
	}
	return min(declared.Duration(), s.Longest)
}
