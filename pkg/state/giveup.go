package state

import (
	"fmt"
	"maps"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// giveUpMost is how long a gang may take to become smaller before it is evicted instead: the
// other workload's places wait for it, and its owner may make it larger again and again.
const giveUpMost = 5 * time.Minute

// giveUp has a running RayCluster give up workers above its minimum for another workload. The
// dispatcher makes it smaller, and its places are freed as when its owner does: once the pods
// are gone and the dispatcher has confirmed that it sends none there.
func (s *sizing) giveUp(e *entry, shrink admission.Shrink, now time.Time) {
	e.giveUp, e.giveUpSince, e.giveUpFor = &event.GiveUp{Sizes: map[string]int{}, Leave: shrink.Leave}, now, &shrink.Reason
	for _, set := range shrink.PodSets {
		size := e.admittedPods(set.Name) - set.Count
		e.giveUp.Sizes[set.Name] = size
		e.disruption.discount(set.Name, set.Count, max(0, s.stayingPods(e, set.Name)-size))
	}
	e.limitSizes()
	e.Reason = &shrink.Reason
	s.emitChanged(e, now)
	s.emitCommand(e, event.Present, now)
}

// limited returns the size of a worker group, no larger than what it shall give up leaves.
func (e *entry) limited(set string, size int) int {
	if e.giveUp == nil {
		return size
	}
	if most, given := e.giveUp.Sizes[set]; given {
		return min(size, most)
	}
	return size
}

// limitSizes has the gang keep no more than what it shall give up leaves, whatever its object
// still says.
func (e *entry) limitSizes() {
	if e.giveUp == nil || e.sizes == nil {
		return
	}
	e.sizes, e.keeps = maps.Clone(e.sizes), maps.Clone(e.keeps)
	for name := range e.giveUp.Sizes {
		for _, of := range []map[string]int{e.sizes, e.keeps} {
			if size, known := of[name]; known {
				of[name] = e.limited(name, size)
			}
		}
	}
}

// endGiveUp ends it when the gang has no more pods than it is to keep.
func (s *sizing) endGiveUp(e *entry) {
	if e.giveUp == nil {
		return
	}
	for name, size := range e.giveUp.Sizes {
		if e.admittedPods(name) > size {
			return
		}
	}
	e.giveUp, e.giveUpSince, e.giveUpFor = nil, time.Time{}, nil
	if e.Reason != nil && e.Reason.Kind == workload.ReasonShrunk {
		e.Reason = nil
	}
}

// gaveNothingUp is why a gang is evicted that did not become smaller in time: for whom is that
// of the shrinking, and now it loses all.
func (l *lifecycle) gaveNothingUp(e *entry, now time.Time) *workload.Reason {
	why := &workload.Reason{Kind: workload.ReasonPreempted, Message: fmt.Sprintf(
		"it did not give up pods above its minimum within %s, which another workload waits for", giveUpMost)}
	if e.giveUpFor != nil && e.giveUpFor.Preemption != nil {
		cause := *e.giveUpFor.Preemption
		cause.Choice, cause.Cut = nil, false // these were of the part
		why.Preemption, why.Foreign = &cause, e.giveUpFor.Foreign
	}
	l.addCost(e, why, now)
	return why
}
