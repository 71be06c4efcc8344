package state

import (
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/spec/resource"
	"muster.dev/muster/pkg/spec/workload"
)

// countUnreserved charges to nodes what a workload's pods take beyond what is
// reserved for it there: pods that stayed after their reservation, or landed
// elsewhere, and those of an earlier attempt.
func (t *tables) countUnreserved(key gangKey) {
	g := t.gangs[key]
	if g == nil {
		return
	}
	beyond, apart := map[string]resource.List{}, g.others
	e := t.live.Get(key.workload)
	for _, pod := range g.pods {
		switch {
		case !pod.Holds():
		case e != nil && pod.Attempt > 0 && pod.Attempt < e.Attempt: // the places are reserved for others
			apart = append(slices.Clip(apart), pod)
		default:
			beyond[pod.Node] = beyond[pod.Node].Plus(pod.Requests)
		}
	}
	if e != nil && e.Cluster == key.cluster {
		for _, p := range e.Placements {
			beyond[p.Node] = beyond[p.Node].Minus(e.requests(p.PodSet).Times(int64(p.Pods)))
		}
	}
	for name, amounts := range beyond {
		beyond[name] = positive(amounts)
	}
	for _, pod := range apart {
		if pod.Holds() {
			beyond[pod.Node] = beyond[pod.Node].Plus(pod.Requests)
		}
	}
	for name := range g.unreservedOn {
		if _, listed := beyond[name]; !listed {
			beyond[name] = nil
		}
	}
	g.unreservedOn = map[string]bool{}
	for name, amounts := range beyond {
		on := admission.NodeKey{Cluster: key.cluster, Name: name}
		if len(amounts) > 0 {
			g.unreservedOn[name] = true
		}
		t.observed.setUnreserved(on, key.workload, len(amounts) > 0)
		t.setUnreserved(on, key.workload, amounts)
	}
	t.countMisplaced(key)
	if len(g.seen) == 0 && t.live.Get(key.workload) == nil {
		delete(t.gangs, key)
	}
}

func (t *tables) setUnreserved(key admission.NodeKey, id workload.ID, amounts resource.List) {
	n := t.nodes[key]
	if n == nil || amounts.Equal(n.unreserved[id]) {
		return
	}
	if len(amounts) == 0 {
		delete(n.unreserved, id)
	} else {
		n.unreserved[id] = amounts
	}
	t.changed.node(key)
	t.syncNode(key)
}

// unreservedOn returns what observed gangs take on a node that was not known.
func (t *tables) unreservedOn(key admission.NodeKey) map[workload.ID]resource.List {
	unreserved := map[workload.ID]resource.List{}
	for id := range t.observed.on[key] {
		for _, pod := range t.gangs[gangKey{key.Cluster, id}].seen {
			if pod.Node == key.Name && pod.Holds() {
				unreserved[id] = unreserved[id].Plus(pod.Requests)
			}
		}
	}
	return unreserved
}

func positive(l resource.List) resource.List {
	above := resource.List{}
	for name, amount := range l {
		if amount > 0 {
			above[name] = amount
		}
	}
	return above
}

// countMisplaced counts the pods of a gang that are bound to other nodes than are
// reserved for them. Where the scheduler is trusted to place pods that is its
// choice; where they are pinned there are none, unless another client binds them.
func (t *tables) countMisplaced(key gangKey) {
	g, misplaced := t.gangs[key], 0
	if e := t.live.Get(key.workload); e != nil && e.Cluster == key.cluster && e.Holding {
		planned := map[slot]int{}
		for _, p := range e.Placements {
			planned[slot{p.PodSet, p.Node}] += p.Pods
		}
		for at, pods := range t.boundPods(e) {
			misplaced += max(0, pods-planned[at])
		}
	}
	t.misplacedPods.now += misplaced - g.misplaced
	t.misplacedPods.ever += max(0, misplaced-g.misplaced)
	g.misplaced = misplaced
}

// Misplaced returns how many pods are bound to other nodes than are reserved for
// them now, and how many came to be so in this term.
func (s *State) Misplaced() (now, ever int) { return s.misplacedPods.now, s.misplacedPods.ever }

// PlacedByScheduler ends the reason of misplaced pods in a trusted queue, where they are meant so.
const PlacedByScheduler = "; in this queue the scheduler places them"

// explainMisplaced says of a running gang how many of its pods are not where they were
// planned.
func (s *State) explainMisplaced(e *entry, now time.Time) {
	if e.Phase != workload.Running || !mayExplain(e, workload.ReasonBesidePlan) {
		return
	}
	misplaced := s.gangs[gangKey{e.Cluster, e.ID}].misplaced
	if misplaced == 0 {
		if e.Reason != nil {
			e.Reason = nil
			s.emitChanged(e, now)
		}
		return
	}
	message := fmt.Sprintf("%d of %d pods are on other nodes than planned", misplaced, e.Pods())
	if s.rules(e).Placement == workload.Trusted {
		message += PlacedByScheduler
	}
	if e.Reason == nil || e.Reason.Message != message {
		e.Reason = &workload.Reason{Kind: workload.ReasonBesidePlan, Message: message}
		s.emitChanged(e, now)
	}
}
