package rules

import "time"

// Holder is how the holder of a lease renews it.
//
// A term survives a lapse. When the API server does not confirm renewals, the term stops acting
// shortly before the lease's end, and keeps its memory. It acts again once a renewal is stored:
// that names the version that this term has written, so no other process has had the Lease in
// between. So an API server that is away for some seconds ends no terms, and its first load
// afterwards is not that of new terms which list everything.
type Holder struct {
	Times
	retry  time.Duration // the pause after the next failure
	acted  time.Time     // when a renewal was stored in time to act by last
	lapsed bool          // it does not act until one is
	slow   bool          // the last one took long, or failed
}

// NewHolder returns the rules for a lease that has just been taken.
func NewHolder(t Times, now time.Time) *Holder {
	return &Holder{Times: t, retry: t.Retry(), acted: now}
}

// Next is what follows an attempt to renew.
type Next struct {
	// After is the pause before the next one.
	After time.Duration
	// Lost: another process may have the lease, and the term ends.
	Lost bool
	// For is for how long no renewal was of use, of a lost lease.
	For time.Duration
	// Stops: it does not act from now on. Resumes: it acts again.
	Stops, Resumes bool
}

// Within bounds the next renewal, if it is to be given up early. A request may be lost without a
// word, as one to a machine that has lost its power. So the first one that takes long is given up
// early enough for another one within the lease. An API server that is slow gets as long as an
// answer can be of use.
func (h *Holder) Within() (most time.Duration, bounded bool) {
	return h.Duration - Margin - h.Every() - 2*h.Retry(), !h.slow
}

// Renewed is what follows a renewal that was stored. It was sent as long ago as the lease is held.
func (h *Holder) Renewed(now time.Time, held time.Duration) Next {
	h.slow = held > h.Every()
	useless := now.Sub(h.acted)
	switch {
	case h.Acts(held):
		next := Next{After: max(h.Every()-held, h.Retry()), Resumes: h.lapsed}
		h.acted, h.retry, h.lapsed = now, h.Retry(), false
		return next
	case useless > lapsedMost*h.Duration: // stored, too late to act by, again and again
		return Next{Lost: true, For: useless}
	default:
		return Next{After: h.Retry(), Stops: h.stop()}
	}
}

// Failed is what follows a renewal that was not confirmed, while the lease has been held for so
// long.
func (h *Holder) Failed(held time.Duration) Next {
	h.slow = true
	if held > lapsedMost*h.Duration {
		return Next{Lost: true, For: held}
	}
	next := Next{After: h.retry}
	if !h.Acts(held) {
		next.Stops = h.stop()
	}
	h.retry = min(2*h.retry, h.Every())
	return next
}

// stop notes that the holder does not act, and reports whether it did before.
func (h *Holder) stop() (stops bool) {
	stops = !h.lapsed
	h.lapsed = true
	return stops
}
