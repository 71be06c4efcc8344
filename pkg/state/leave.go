package state

import (
	"fmt"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// removalKept is how long the command to remove what is left in a cluster stays readable
// after its workload has gone elsewhere. A cluster that comes back later asks queue-manager
// about each object that it finds.
const removalKept = 7 * 24 * time.Hour

// leaveClusters forgets the nodes of the clusters that leave, as gangs give up their places
// there. From a cluster that leaves by force gangs are moved away at once.
func (s *State) leaveClusters(now time.Time) {
	if s.catchingUp {
		return
	}
	leaving := map[string]*quota.ClusterCordon{}
	for _, c := range s.policy.ClusterCordons {
		if c.Left {
			leaving[c.Name] = &c
		}
	}
	if len(leaving) == 0 {
		return
	}
	for _, e := range s.startedInOrder() {
		if c := leaving[e.Cluster]; c != nil && c.Forced && e.Holding && !s.frozen(e) {
			s.moveAway(e, &workload.Reason{Kind: workload.ReasonClusterLost, Message: fmt.Sprintf(
				"%s; the places of attempt %d there were freed by force", c.Message(), e.Attempt)}, now)
		}
	}
	for _, key := range s.nodeKeys() {
		if n := s.nodes[key]; leaving[key.Cluster] != nil && n.present && len(n.holders) == 0 {
			s.removeNode(key, now)
		}
	}
}

// moveAway frees what a workload holds in a cluster of which no confirmation is waited for,
// and has it start again elsewhere. The cluster is commanded to remove what it still has. An
// eviction that has begun goes on for its own reason, which may have no next attempt.
func (s *State) moveAway(e *entry, reason *workload.Reason, now time.Time) {
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
