package state

import (
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// removalKept is how long the command to remove what is left in a cluster stays readable
// after its workload has gone elsewhere. A cluster that comes back later asks queue-manager
// about each object that it finds.
const removalKept = 7 * 24 * time.Hour

// releasedAtOnce bounds the workloads whose places in lost clusters one Tick releases: all of
// them are written in one commit. The others follow at the next Ticks.
const releasedAtOnce = 100

// leaveClusters forgets the nodes of the clusters that leave, as gangs give up their places
// there. The places in a cluster that leaves by force are released at once.
func (s *State) leaveClusters(now time.Time) {
	if s.catchingUp {
		return
	}
	leaving, forced := false, false
	for _, c := range s.policy.ClusterCordons {
		leaving, forced = leaving || c.Left, forced || c.Forced
		if _, is := s.failedOver[c.Name]; c.Left && is { // the cluster that joins by that name may be another
			delete(s.permissions, c.Name)
			delete(s.failedOver, c.Name)
		}
	}
	if forced {
		s.releaseLeftByForce(now)
	}
	if !leaving {
		return
	}
	var empty []admission.NodeKey // most Ticks find none: only these are sorted
	for key, n := range s.nodes {
		if n.present && len(n.holders) == 0 && s.admission.Quota().Left(key.Cluster) {
			empty = append(empty, key)
		}
	}
	slices.SortFunc(empty, compareKeys)
	for _, key := range empty {
		s.removeNode(key, now)
	}
}

// releaseLeftByForce releases the places of gangs in the clusters that leave by force, and ends
// the removal of lost attempts of waiting workloads there. Workloads that were submitted first
// come first.
func (s *State) releaseLeftByForce(now time.Time) {
	lost := func(e *entry) bool { return s.admission.Quota().LeftByForce(e.Cluster) && !s.frozen(e) }
	left := releasedAtOnce
	for _, e := range s.startedInOrder() {
		if left > 0 && e.Holding && lost(e) {
			left--
			s.releaseLost(e, &workload.Reason{Kind: workload.ReasonClusterLost, Message: fmt.Sprintf(
				"%s; the places of attempt %d there were freed by force", s.admission.Quota().Cordon(e.Cluster).Message(), e.Attempt)}, now)
		}
	}
	for _, e := range s.recovery.removingInOrder() {
		if left > 0 && lost(e) {
			left--
			s.recovery.abandonRemoval(e, now)
		}
	}
}

// releaseLost frees what a workload holds in a cluster from which no confirmation is expected,
// and has it start again elsewhere. The cluster is commanded to remove what it still has. An
// eviction that has begun goes on for its own reason, which may have no next attempt.
func (s *State) releaseLost(e *entry, reason *workload.Reason, now time.Time) {
	left := s.command(e, event.Absent)
	subject := event.DispatchSubject(e.Cluster, e.ID)
	if !tearingDown(e) && !e.Phase.Final() {
		s.tearDown(e, workload.Evicting, reason, now)
	} else {
		s.explainLeft(e, waitsForLeft, "")
	}
	s.release(e, now)
	left.Order = s.commandOrder()
	s.emit(now, subject, removalKept, left)
}
