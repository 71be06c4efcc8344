package state

import (
	"time"

	"muster.dev/muster/pkg/message/event"
)

// Names of the parts that report on a cluster.
const (
	Watcher    = "capacity-watcher"
	Dispatcher = "dispatcher"
)

// Part is the watcher or the dispatcher of a cluster.
type Part struct{ Cluster, Name string }

// heard has when each part reported last: in this term by the clock of the term, before it
// by the clock of NATS.
type heard map[Part]time.Time

// pause is the time from one report of a part to the next, when that was long.
type pause struct{ from, to time.Time }

// before returns when a part was last heard, if that was before the given time, which is
// when it was asked first; else that time.
func (h heard) before(part Part, asked time.Time) time.Time {
	if last, ok := h[part]; ok && last.Before(asked) {
		return last
	}
	return asked
}

// hear notes that a part has reported. What is read again, at the beginning of a term or in it,
// was reported before: see HeardBefore.
func (s *State) hear(cluster, name string, now time.Time) {
	if s.catchingUp || s.readAgain {
		return
	}
	part := Part{cluster, name}
	if last := s.heardSince(part); s.inquiries.timeout > 0 && !last.IsZero() && elapsed(now, last, s.inquiries.timeout) {
		s.inquiries.pauses[part] = pause{last, now}
	}
	s.inquiries.heard[part] = now
}

// HeardBefore comes before each message that is taken in, with the time at which NATS stored
// it if it is read again, else a zero one. At the beginning of a term the silence of its part
// begins then and not with the term. NATS has another clock: a time that is still to come
// counts as now. Later in the term, when the connection to NATS was lost, a report that is
// read again is no sign of life.
func (s *State) HeardBefore(report event.Payload, stored, now time.Time) {
	s.readAgain = !s.catchingUp && !stored.IsZero()
	part, session := reporter(report)
	if !s.catchingUp || stored.IsZero() || part == (Part{}) || s.replaced(part, session) {
		return
	}
	if stored.After(now) {
		stored = now
	}
	if stored.After(s.inquiries.heard[part]) {
		s.inquiries.heard[part] = stored
	}
}

// reporter returns the part that makes reports of this kind, and the session of its lease;
// an empty part for any other event.
func reporter(report event.Payload) (part Part, session int64) {
	switch r := report.(type) {
	case *event.NodeObserved:
		return Part{r.Node.Cluster, Watcher}, r.Version.Session
	case *event.NamespaceObserved:
		return Part{r.Cluster, Watcher}, r.Version.Session
	case *event.CapacitySynced:
		return Part{r.Cluster, Watcher}, r.Version.Session
	case *event.GangObserved:
		return Part{r.Cluster, Watcher}, r.Version.Session
	case *event.GangStatus:
		return Part{r.Cluster, Dispatcher}, r.Session
	case *event.PermissionAsked:
		return Part{r.Cluster, Dispatcher}, r.Session
	default:
		return Part{}, 0
	}
}

// replaced reports whether a later session of the part is known.
func (s *State) replaced(part Part, session int64) bool {
	if part.Name == Dispatcher {
		return session < s.dispatchers[part.Cluster]
	}
	return s.fromReplacedWatcher(part.Cluster, event.Version{Session: session})
}

// heardSince returns when a part reported last. A part of which the term knows no report
// counts from the beginning of the term.
func (s *State) heardSince(part Part) time.Time {
	if last, ok := s.inquiries.heard[part]; ok {
		return last
	}
	return s.begun
}

// watcherReports reports whether the watcher of a cluster was heard within the time after which it
// is silent. One of which the term knows no report was not: its cluster may have been cut off long
// before the term, and a watcher that runs reports within seconds.
func (s *State) watcherReports(cluster string, now time.Time) bool {
	last, heard := s.inquiries.heard[Part{cluster, Watcher}]
	return heard && now.Sub(last) < s.silentAfter
}

// fromReplacedWatcher reports whether an observation is of a watcher that another one has
// replaced, and which has reported its full list since. Until then, versions decide.
func (s *State) fromReplacedWatcher(cluster string, v event.Version) bool {
	return v.Session < s.watchers[cluster]
}
