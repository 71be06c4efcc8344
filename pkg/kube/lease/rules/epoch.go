package rules

import "time"

const (
	// EpochKey is the annotation of a Lease that has the epoch of its holder.
	EpochKey = "muster.dev/epoch"
	// EpochRetry is the pause before the next attempt to take an epoch; it doubles up to
	// EpochRetryMost.
	EpochRetry     = 100 * time.Millisecond
	EpochRetryMost = 2 * time.Second
)

// aheadMost is how far an epoch may be ahead of the clock. Readers ignore messages with an
// epoch further ahead (event.AheadMost): it is forged, or of a machine whose clock was days
// ahead, and an epoch larger than it would be ignored as well.
const aheadMost = 24 * time.Hour

// NextEpoch is larger than the last epoch of the Lease and the one known from elsewhere;
// the time makes it larger than any forgotten epoch.
func NextEpoch(now time.Time, last, known int64) int64 {
	credible := func(epoch int64) int64 {
		if epoch > now.Add(aheadMost).UnixNano() {
			return 0
		}
		return epoch
	}
	return max(now.UnixNano(), credible(last)+1, credible(known)+1)
}
