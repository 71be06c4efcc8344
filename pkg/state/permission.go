package state

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

const (
	// stopMargin is for how long after the end of a permission its gangs may still run: the
	// error between the clocks of a cluster's machines, which a dispatcher that has just
	// started goes by (10 s); the time to notice the end and for requests that are on their
	// way (20 s); and the time that the pods are given to end (10 s), and their kubelets (5 s).
	stopMargin = 45 * time.Second
	// grantEvery is how often a cluster is granted its permission at most. Its dispatcher asks
	// again when it has no answer.
	grantEvery = time.Second
	// driftOf is the part of a permission by which the clocks of queue-manager and of a
	// dispatcher may run apart meanwhile.
	driftOf = 100
	// permissionKept is how long a permission stays readable: its dispatcher has read it at
	// once, or does not count it.
	permissionKept = event.PermissionMost
)

// permission is what the dispatcher of a cluster has asked for, and what it was granted.
type permission struct {
	session int64         // that asked last
	lasts   time.Duration // the longest of what was asked for
	ends    time.Time     // of what was granted in this term, at the latest
	granted time.Time     // when it was last granted something in this term
	// moved: gangs were released that may have left something there. empty: since the cluster is
	// out of reach, all have left it that fail over.
	moved, empty bool
}

// permissions are those of the term, by cluster. They are not stored: a term takes it that
// an earlier one has granted as much as was asked for when the term began.
type permissions map[string]*permission

// PermissionAsked grants a cluster what its dispatcher asks for. The dispatcher counts from its
// question, so what it was granted ends before the same time from now. It asks once it has
// removed what it may not keep, so the cluster may get gangs again.
func (s *State) PermissionAsked(p *event.PermissionAsked, now time.Time) {
	if p.Session < s.dispatchers[p.Cluster] {
		return
	}
	s.dispatchers[p.Cluster] = p.Session
	s.hear(p.Cluster, Dispatcher, now)
	known := s.permissions[p.Cluster]
	if known == nil {
		known = &permission{}
		s.permissions[p.Cluster] = known
	}
	lasts := time.Duration(p.For)
	known.session, known.lasts = p.Session, max(known.lasts, lasts)
	s.failedOver.askedBy(p)
	if s.catchingUp || s.readAgain { // an earlier term may have answered, and the dispatcher asks again
		return
	}
	if since := now.Sub(known.granted); !known.granted.IsZero() && since >= 0 && since < grantEvery {
		return
	}
	known.granted = now
	delete(s.failedOver, p.Cluster)
	if ends := now.Add(lasts); ends.After(known.ends) {
		known.ends = ends
	}
	s.emit(now, event.PermissionSubject(p.Cluster), permissionKept, &event.PermissionGranted{
		Cluster: p.Cluster, Session: p.Session, Number: p.Number, For: p.For,
	})
}

// permittedUntil is when a cluster's permission ends at the latest; zero for a cluster that
// has not asked for any.
func (s *State) permittedUntil(cluster string) time.Time {
	p := s.permissions[cluster]
	if p == nil {
		return time.Time{}
	}
	if before := s.begun.Add(p.lasts); before.After(p.ends) {
		return before
	}
	return p.ends
}

// stoppedBy is when all that needed the permission of a cluster has stopped: the
// dispatcher that asks obeys it, and has no other. Zero for never.
func (s *State) stoppedBy(cluster string) time.Time {
	p := s.permissions[cluster]
	if p == nil || p.session != s.dispatchers[cluster] {
		return time.Time{}
	}
	return s.permittedUntil(cluster).Add(p.lasts/driftOf + stopMargin)
}

// failOver releases the places of gangs in the clusters whose permission has run out while
// neither part reported: of those gangs that the dispatcher stops by itself. A gang that
// the watcher of a cluster shows is not lost, whatever its dispatcher does; and a dispatcher
// that reports names itself what it has stopped.
func (s *State) failOver(now time.Time) {
	if s.catchingUp || s.silentAfter <= 0 {
		return
	}
	gone := map[string]time.Time{}
	for cluster, p := range s.permissions {
		by, last := s.stoppedBy(cluster), s.heardSince(Part{cluster, Watcher})
		if d := s.heardSince(Part{cluster, Dispatcher}); d.After(last) {
			last = d
		}
		if by.IsZero() || now.Before(by) || now.Sub(last) < s.silentAfter {
			p.empty = false
		} else if !p.empty {
			gone[cluster] = by
		}
	}
	if len(gone) == 0 || !s.failOverFrom(gone, now) {
		return
	}
	for _, cluster := range slices.Sorted(maps.Keys(gone)) {
		p := s.permissions[cluster]
		if p.empty = true; p.moved {
			p.moved = false
			s.failedOver[cluster] = FailedOver{Cluster: cluster, Session: p.session, At: now} // until the dispatcher asks, none comes here
			s.emit(now, event.PermissionSubject(cluster), removalKept, &event.PermissionGranted{Cluster: cluster, Session: p.session})
		}
	}
}

// failOverFrom releases the places of at most releasedAtOnce gangs in clusters, of which all have
// stopped by the given times, and reports whether none is left there.
func (s *State) failOverFrom(gone map[string]time.Time, now time.Time) (all bool) {
	left := releasedAtOnce
	for _, e := range s.startedInOrder() {
		by, is := gone[e.Cluster]
		if !is || !e.Holding || !e.permitted || !needsPermission(e, s.rules(e)) || s.frozen(e) {
			continue
		}
		if left == 0 {
			return false
		}
		left--
		s.permissions[e.Cluster].moved = s.permissions[e.Cluster].moved || s.mayHaveStarted(e)
		s.releaseLost(e, &workload.Reason{Kind: workload.ReasonClusterLost, Message: fmt.Sprintf(
			"cluster %q is out of reach since %s, and its permission to run the gang ended by %s; what attempt %d had there was stopped",
			e.Cluster, s.heardSince(Part{e.Cluster, Dispatcher}).UTC().Format(time.RFC3339), by.UTC().Format(time.RFC3339), e.Attempt)}, now)
	}
	return true
}

// mayHaveStarted reports whether something may have been created of a gang that fails over: it was
// reported, or its cluster had a permission after the admission.
func (s *State) mayHaveStarted(e *entry) bool {
	return !e.Times.Dispatched.IsZero() || s.permittedUntil(e.Cluster).After(e.Times.Admitted)
}

// stoppedReason is why a gang is evicted that its dispatcher has stopped.
func stoppedReason(e *entry) *workload.Reason {
	return &workload.Reason{Kind: workload.ReasonClusterLost, Message: fmt.Sprintf(
		"cluster %q was out of reach for longer than its permission to run the gang; its dispatcher stopped attempt %d", e.Cluster, e.Attempt)}
}
