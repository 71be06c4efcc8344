package rules

import (
	"time"

	coordination "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Standby is what a process that wants a lease has seen of its holder, by its own clock.
type Standby struct {
	Times
	// Identity is that of the term for which it wants the lease, Ended that of the last term of the
	// same process, whose work has ended; empty for none.
	Identity, Ended string
	// Lease is as it was seen last.
	Lease *coordination.Lease

	since time.Time // when its spec was seen first
	// notBefore gives the holder time for a renewal after the API server was away.
	notBefore time.Time
	away      bool
}

// Watched notes a Lease that a watch has shown. Its spec is another one after each renewal; others
// only write notes on it.
func (s *Standby) Watched(lease *coordination.Lease, now time.Time) {
	if s.Lease == nil || !equality.Semantic.DeepEqual(s.Lease.Spec, lease.Spec) {
		s.since = now
	}
	s.Lease = lease
}

// Read notes a Lease that was read by a request that began then.
func (s *Standby) Read(lease *coordination.Lease, began, now time.Time) {
	s.Watched(lease, now)
	if s.away || now.Sub(began) > s.Every() {
		s.notBefore, s.away = now.Add(s.Every()+s.Retry()), false // bounded in FreeAt
	}
}

// Failed notes that the Lease could not be read or taken. It reports whether that is new.
func (s *Standby) Failed() (first bool) {
	first = !s.away
	s.away = true
	return first
}

// FreeAt is when the Lease may be taken; the zero time if no work is done under it. That is so
// after a release, for the last term of this process, and when this term's own request was stored
// without an answer.
func (s *Standby) FreeAt() time.Time {
	switch HolderOf(s.Lease) {
	case "", s.Ended, s.Identity:
		return time.Time{}
	}
	lasts := s.Duration
	if seconds := s.Lease.Spec.LeaseDurationSeconds; seconds != nil && *seconds > 0 {
		// what the holder acts by, which may be of another version
		lasts = min(time.Duration(*seconds)*time.Second, max(MostDuration, s.Duration))
	}
	free := s.since.Add(lasts)
	if late := free.Add(s.Duration); s.notBefore.After(late) {
		return late // where each request is slow, the time for one more renewal must come to an end
	}
	if free.Before(s.notBefore) {
		return s.notBefore
	}
	return free
}

// LookAt is when the Lease is read although a watch shows nothing.
func (s *Standby) LookAt(now time.Time) time.Time {
	free, look := s.FreeAt(), s.since.Add(2*s.Every())
	if !look.After(now) {
		look = now.Add(s.Every())
	}
	if free.Before(look) {
		return free
	}
	return look
}

// HolderOf returns the identity of the term that has the Lease, and nothing after its release.
func HolderOf(lease *coordination.Lease) string {
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}
