package state

import (
	"fmt"
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// distress is what is wrong with a cluster that the owners of its gangs have to know.
type distress int

const (
	inReach         distress = iota
	silentCluster            // its watcher has not reported for SetSilentAfter
	permissionEnded          // nor has its dispatcher, and its permission has run out
)

// distressOf returns what is wrong with a cluster. It is not known at the beginning of a term, while
// the watcher has not reported and there is still time.
func (s *State) distressOf(cluster string, now time.Time) (d distress, known bool) {
	silent := func(name string) bool { return now.Sub(s.heardSince(Part{cluster, name})) >= s.silentAfter }
	switch {
	case s.watcherReports(cluster, now):
		return inReach, true
	case !silent(Watcher):
		return inReach, false
	case silent(Dispatcher) && !s.stoppedBy(cluster).IsZero() && !now.Before(s.permittedUntil(cluster)):
		return permissionEnded, true
	}
	return silentCluster, true
}

// noteStranded gives gangs that have places in a cluster that is out of reach a reason, and
// takes it away when the cluster reports again: so their owners get an event once for each
// silence, and another one when the permission of the cluster has run out. One call changes at
// most releasedAtOnce gangs, and the next ones the rest.
func (s *State) noteStranded(now time.Time) {
	if s.catchingUp || s.silentAfter <= 0 {
		return
	}
	news := map[string]distress{}
	for _, cluster := range s.admission.Clusters() {
		d, known := s.distressOf(cluster, now)
		if noted, before := s.distress[cluster]; known && (!before || noted != d) {
			news[cluster] = d
		}
	}
	if len(news) == 0 {
		return
	}
	left := releasedAtOnce
	for _, e := range s.startedInOrder() {
		d, is := news[e.Cluster]
		if !is || !e.Holding || tearingDown(e) || s.frozen(e) {
			continue
		}
		if left == 0 {
			return // and goes on here with the next call
		}
		if s.explainDistress(e, d, now) {
			left--
		}
	}
	for cluster, d := range news {
		s.distress[cluster] = d
	}
}

// explainDistress changes the reason of a gang to what is wrong with its cluster, or takes it
// away, and reports whether it did.
func (s *State) explainDistress(e *entry, d distress, now time.Time) (changed bool) {
	reason := s.distressReason(e, d)
	switch {
	case reason == nil && isStranded(e):
		e.Reason = s.growthReason(e)
		s.emitChanged(e, now)
		if s.gangs[gangKey{e.Cluster, e.ID}] != nil {
			s.explainMisplaced(e, now)
		}
		return true
	case reason == nil || e.Reason != nil && e.Reason.Kind == reason.Kind || !mayStrand(e, reason.Kind):
		return false
	}
	e.Reason = reason
	s.emitChanged(e, now)
	return true
}

// distressReason is the reason of a gang in a cluster; nil for one in reach. A gang that needs no
// permission goes on when that of its cluster has run out.
func (s *State) distressReason(e *entry, d distress) *workload.Reason {
	if d == inReach {
		return nil
	}
	moves := e.permitted && needsPermission(e, s.rules(e)) && !s.stoppedBy(e.Cluster).IsZero()
	since := fmt.Sprintf("cluster %q has not reported since %s", e.Cluster, s.heardSince(Part{e.Cluster, Watcher}).UTC().Format(time.RFC3339))
	switch {
	case moves && d == permissionEnded:
		return &workload.Reason{Kind: workload.ReasonPermissionEnded, Message: fmt.Sprintf(
			"%s, and its permission to run the gang ended by %s: what attempt %d has there is stopped, and the gang is queued again after %s",
			since, s.permittedUntil(e.Cluster).UTC().Format(time.RFC3339), e.Attempt, s.stoppedBy(e.Cluster).UTC().Format(time.RFC3339))}
	case moves:
		return &workload.Reason{Kind: workload.ReasonClusterSilent, Message: since +
			": what happens to the gang is not seen; it keeps its places there until the permission of the cluster to run it has run out"}
	}
	return &workload.Reason{Kind: workload.ReasonClusterSilent, Message: since +
		": what happens to the gang is not seen; it keeps its places there"}
}
