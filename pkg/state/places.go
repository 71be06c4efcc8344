package state

import (
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// scheduleReplacement sets a timer for the gangs with places on a node that is gone, not
// ready, barred, or has no room for them any more. A timer that is set already is only
// brought nearer: a loss does not wait for the grace of a drain.
func (h *healing) scheduleReplacement(key admission.NodeKey, now time.Time) {
	n := h.nodes[key]
	if n == nil || len(n.holders) == 0 || n.healthy() {
		return
	}
	for _, e := range h.holders(n) {
		if tearingDown(e) || h.frozen(e) {
			continue
		}
		switch {
		case n.lost():
			e.replaceBy(now)
		case n.Drained() && e.Phase == workload.Running:
			h.announceReplacement(e, key.Name, now)
		default:
			e.replaceBy(now.Add(settleTime))
		}
		h.setTimer(e)
	}
}

// announcedReplacement is when pods of a running gang leave a drained node; zero when that is
// not announced. EvictAt has it, which means something else when a gang is torn down.
func (e *entry) announcedReplacement() time.Time {
	if e.Phase != workload.Running {
		return time.Time{}
	}
	return e.EvictAt
}

// replaceBy has the lost places of a gang replaced at the given time at the latest.
func (e *entry) replaceBy(at time.Time) {
	if e.replaceAt.IsZero() || at.Before(e.replaceAt) {
		e.replaceAt = at
	}
}

// announceReplacement announces to a running gang that its places on a drained node will be
// replaced, once its grace is over. One announcement counts for all nodes that are drained
// before its time.
func (h *healing) announceReplacement(e *entry, node string, now time.Time) {
	if at := e.announcedReplacement(); !at.IsZero() {
		e.replaceBy(at)
		return
	}
	grace := time.Duration(h.rules(e).CheckpointGrace)
	e.replaceBy(now.Add(grace))
	if grace <= 0 {
		return
	}
	e.EvictAt = now.Add(grace)
	e.Reason = &workload.Reason{Kind: workload.ReasonDrained, Message: fmt.Sprintf("node %s is drained: its pods are moved, or the gang is evicted, at %s",
		node, e.EvictAt.UTC().Format(time.RFC3339))}
	h.emitChanged(e, now)
	h.emitCommand(e, event.Present, now)
}

// withdrawReplacement reports that an announced replacement does not happen: the node is not
// drained any more.
func (h *healing) withdrawReplacement(e *entry, now time.Time) {
	if e.Reason != nil && e.Reason.Kind == workload.ReasonDrained {
		e.Reason = h.growthReason(e)
	}
	h.emitChanged(e, now)
	h.emitCommand(e, event.Present, now)
}

// lostPlaces returns how many pods of each place of a gang need another place, and why. On
// a lost node all of them do, and on a drained one, too, once the announced time has come.
// On another barred or overfull node those do that are not bound there.
func (h *healing) lostPlaces(e *entry, now time.Time) (lost map[slot]int, reason *workload.Reason) {
	lost, reason = map[slot]int{}, &workload.Reason{Kind: workload.ReasonPlaceLost}
	bound := h.boundPods(e)
	for _, p := range e.Placements {
		n := h.nodes[admission.NodeKey{Cluster: e.Cluster, Name: p.Node}]
		if n == nil || n.healthy() {
			continue
		}
		at := slot{p.PodSet, p.Node}
		open := max(0, p.Pods-bound[at])
		if p.PodSet == submitterOf(e) && h.podSeen(e, p.PodSet) || e.atWantedSize(p.PodSet, bound) {
			open = 0 // it is there, or has ended; or no more pods are wanted now
		}
		refusal := n.Refuses(e.template(p.PodSet))
		switch {
		case n.lost():
			lost[at], reason.Kind, reason.Message = p.Pods, workload.ReasonNodeLost, lostBecause(n, h.grace)
		case n.Drained() && !e.announcedReplacement().After(now):
			lost[at], reason.Kind, reason.Message = p.Pods, workload.ReasonDrained, fmt.Sprintf("node %s is drained", p.Node)
		case refusal != "" && open > 0:
			lost[at], reason.Message = open, fmt.Sprintf("node %s accepts no more pods of pod set %q: %s", p.Node, p.PodSet, refusal)
		case n.excess() != "" && open > 0:
			lost[at], reason.Message = open, fmt.Sprintf("insufficient %s on node %s: other pods use the reserved place", n.excess(), p.Node)
		}
	}
	return lost, reason
}

// checkPlaces sets a timer for places that pods have left and that are barred to their
// replacements.
func (h *healing) checkPlaces(e *entry, now time.Time) {
	settled := now.Add(settleTime)
	if tearingDown(e) || !e.Holding || !e.replaceAt.IsZero() && !e.replaceAt.After(settled) {
		return
	}
	if lost, _ := h.lostPlaces(e, now); len(lost) > 0 {
		e.replaceBy(settled)
	}
}

// replacePlaces replaces the lost places of a gang by places on nodes with proven room, in
// the transaction that releases the old ones. The gang is evicted whole when there is no
// room for all of them, or when outcomeOfLoss requires it. An announced replacement keeps
// its time.
func (h *healing) replacePlaces(e *entry, now time.Time) {
	announced := elapsed(now, e.announcedReplacement(), 0)
	if announced {
		e.EvictAt = time.Time{}
	}
	e.replaceAt = e.announcedReplacement()
	lost, reason := h.lostPlaces(e, now)
	if len(lost) == 0 {
		if announced {
			h.withdrawReplacement(e, now)
		}
		return
	}
	switch h.outcomeOfLoss(e, lost) {
	case keepsPlaces:
		h.explainFixed(e, reason.Message, now)
		return
	case losesHead, losesSubmitter, evictedByPolicy:
		h.evictNow(e, reason, now)
		return
	case hasTiedPlaces:
		reason.Message += "; no pod of the gang is moved alone, because " + whyTied
		h.evictNow(e, reason, now)
		return
	case replacesPlaces:
	}
	if !h.reassign(e, lost, now) {
		reason.Message += "; no other place is free"
		h.evictNow(e, reason, now)
		return
	}
	if e.Phase == workload.Running {
		e.Reason, e.disruption.reported = &workload.Reason{Kind: workload.ReasonPodLost, Message: reason.Message + "; its pods are moved to other nodes"}, true
	} else {
		e.Reason = &workload.Reason{Kind: workload.ReasonPlaceLost, Message: reason.Message + "; other places are reserved instead"}
	}
	h.emitChanged(e, now)
	h.emitCommand(e, event.Present, now)
	h.sizing.resize(e, now)
}

// reassign reserves other places instead of the given ones, or changes nothing. A gang
// without bound pods may get other places for all its pods when that is what it takes.
func (h *healing) reassign(e *entry, lost map[slot]int, now time.Time) bool {
	if !e.Interdependent() && h.reassignOnly(e, lost, now) {
		return true
	}
	if len(h.boundPods(e)) > 0 { // not interdependent, or it would have tied places
		return false
	}
	all := map[slot]int{}
	for _, p := range e.Placements {
		if p.PodSet != submitterOf(e) { // its place is written in the object
			all[slot{p.PodSet, p.Node}] = p.Pods
		}
	}
	return h.reassignOnly(e, all, now)
}

func (h *healing) reassignOnly(e *entry, replaced map[slot]int, now time.Time) bool {
	var kept []workload.Placement
	for _, p := range e.Placements {
		if p.Pods -= replaced[slot{p.PodSet, p.Node}]; p.Pods > 0 {
			kept = append(kept, p)
		}
	}
	rest := slices.Clone(e.PodSets) // the pods that need a place
	for i := range rest {
		rest[i].Count = 0
		for at, pods := range replaced {
			if at.PodSet == rest[i].Name {
				rest[i].Count += pods
			}
		}
		h.constrainToDomain(e, &rest[i], kept)
	}
	placements, fits := h.admission.Replace(e.ID, kept, rest, now)
	if !fits {
		return false
	}
	h.updateReserved(e, -1)
	e.Placements = placements
	h.updateReserved(e, 1)
	e.scaleDown = nil
	h.recordPlaces(e)
	return true
}
