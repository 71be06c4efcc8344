// Package rules has what the processes that share a Lease do, and when: a standby that takes it
// (Standby), the holder that renews it (Holder), and the epochs of their terms (NextEpoch).
//
// It reads no clock and sends nothing. So package lease and the simulation of whole installations
// go by the same rules.
package rules

import "time"

const (
	// Margin is how long before its end a lease counts as lost.
	Margin = time.Second
	// MostDuration bounds how long nothing may act for a cluster after its holder has died, whatever
	// a flag or a Lease says.
	MostDuration = 5 * time.Minute
	// DefaultDuration is a compromise between a slow take-over and a slow API server: a holder acts
	// for 3 s after its last renewal, and its successor begins after 4 s. A shorter one would need
	// more writes, and make a holder stop for each slow answer.
	DefaultDuration = 4 * time.Second

	// renewals is how often a holder renews the Lease within its duration. With the default of 4 s
	// that is one write to the API server a second.
	renewals = 4
	// retries is how often a renewal that fails is tried again within the time between two
	// renewals, at first. The pauses double, up to the time between two renewals.
	retries = 4
	// lapsedMost is for how many durations a term outlives its last renewal. It does not act
	// after the first one.
	lapsedMost = 3
)

// Times are the lengths of time that follow from the duration of a lease.
type Times struct {
	// Duration is how long a holder that does not renew keeps the lease.
	Duration time.Duration
}

// Every is the time between two renewals.
func (t Times) Every() time.Duration { return t.Duration / renewals }

// Retry is the first pause after a request that has failed.
func (t Times) Retry() time.Duration { return t.Every() / retries }

// Acts reports whether a holder may act that has held the lease for so long without a renewal.
func (t Times) Acts(held time.Duration) bool { return held <= t.Duration-Margin }
