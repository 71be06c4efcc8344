package permission

import (
	"slices"
	"time"
)

// seen is since when a process has seen what is stored. stored: it has stored that itself, or
// has looked when it was not stored yet, so that its own clock alone counts.
type seen struct {
	until  time.Time
	at     time.Duration
	stored bool
	logged bool // that it has ended by the wall clock
}

// seenMost bounds the permissions that a process remembers: those of hours.
const seenMost = 4000

// sight returns since when this process counts a permission that is not the one that it saw last.
// One that it has seen before is there again, as after a restore of etcd, and gets no new
// time. Neither does one of an earlier session: it was stored before what this process has seen.
func (k *Keeper) sight(stored Record, now time.Duration) seen {
	for _, before := range slices.Backward(k.sightings) {
		if before.until.Equal(stored.Until) {
			return before
		}
	}
	fresh := stored.Session >= k.latest
	k.latest = max(k.latest, stored.Session)
	if fresh && k.hasLooked && now-k.looked <= seenLate { // it was stored after that look
		return seen{until: stored.Until, at: k.looked, stored: true}
	}
	return seen{until: stored.Until, at: now}
}

// see notes since when this process has seen what is stored now.
func (k *Keeper) see(s seen) {
	k.seen = s
	if s.until.IsZero() {
		return
	}
	if len(k.sightings) == seenMost {
		k.sightings = slices.Delete(k.sightings, 0, 1)
	}
	k.sightings = append(k.sightings, s)
}
