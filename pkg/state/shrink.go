package state

import (
	"slices"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// scaleDown is what a gang that has become smaller keeps. The dispatcher is commanded to
// send pods there only, and the other places are freed once it confirms the command.
// Otherwise it might send a new pod to a place that another gang has by then. It is not
// stored: a new term sends the command again.
type scaleDown struct {
	id     string // of the command
	sets   []workload.PodSet
	places []workload.Placement
	// confirmed: the dispatcher has reported that it follows the command.
	confirmed bool
}

// shrink gives up the places of pods that are gone and will not come back.
func (s *sizing) shrink(e *entry, now time.Time) {
	if e.removalSent || e.Phase == workload.Evicting || e.Phase == workload.Cancelling {
		return // all of it goes
	}
	sets, kept, less := s.sizeAfterScaleDown(e)
	switch {
	case e.scaleDown != nil && less && within(kept, e.scaleDown.places):
		s.finishScaleDown(e, now)
	case less:
		e.scaleDown = &scaleDown{sets: sets, places: kept}
		s.emitCommand(e, event.Present, now)
	case e.scaleDown != nil: // they are wanted again
		e.scaleDown = nil
		s.emitCommand(e, event.Present, now)
	}
}

// sizeAfterScaleDown returns what a gang keeps when it has places only for the sizes
// that the dispatcher wants kept. A place with a pod is kept. A running gang gives
// nothing up while some of its pods are not bound, because it is not known yet whose
// place is whose.
func (s *sizing) sizeAfterScaleDown(e *entry) (sets []workload.PodSet, kept []workload.Placement, less bool) {
	g := s.gangs[gangKey{e.Cluster, e.ID}]
	if g == nil {
		return nil, nil, false
	}
	sets, kept = slices.Clone(e.PodSets), slices.Clone(e.Placements)
	for i := range sets {
		set := &sets[i]
		size, known := e.keeps[set.Name]
		if set.Role != workload.RoleWorker || !known || size >= set.Count {
			continue
		}
		holding, unbound := g.podsByNode(set.Name, e.Attempt)
		if unbound && e.Phase == workload.Running {
			continue
		}
		there := 0
		for _, p := range kept {
			if p.PodSet == set.Name {
				there += min(p.Pods, holding[p.Node])
			}
		}
		if size = max(size, there); size >= set.Count {
			continue
		}
		spare := size - there
		for j := range kept {
			if p := &kept[j]; p.PodSet == set.Name {
				taken := min(p.Pods, holding[p.Node])
				open := min(p.Pods-taken, spare)
				spare -= open
				p.Pods = taken + open
			}
		}
		set.Resized += size - set.Count
		set.Count, less = size, true
	}
	return sets, slices.DeleteFunc(kept, func(p workload.Placement) bool { return p.Pods == 0 }), less
}

// within reports whether all places are among others.
func within(places, others []workload.Placement) bool {
	return !slices.ContainsFunc(places, func(p workload.Placement) bool {
		i := slices.IndexFunc(others, func(o workload.Placement) bool { return o.PodSet == p.PodSet && o.Node == p.Node })
		return i < 0 || others[i].Pods < p.Pods
	})
}

// scaleDownApproved notes by which command to give up places the dispatcher works; empty
// for none.
func (s *sizing) scaleDownApproved(e *entry, id string, now time.Time) {
	switch {
	case e.removalSent || e.Phase == workload.Evicting || e.Phase == workload.Cancelling:
	case e.scaleDown != nil && e.scaleDown.id == id:
		e.scaleDown.confirmed = true
	case e.scaleDown == nil && id != "":
		// Of an earlier term, or wanted again meanwhile: it shall know what the gang
		// has.
		s.emitCommand(e, event.Present, now)
	}
}

// finishScaleDown frees what the dispatcher does not use any more.
func (s *sizing) finishScaleDown(e *entry, now time.Time) {
	y := e.scaleDown
	if !y.confirmed {
		return
	}
	e.scaleDown = nil
	s.updateReserved(e, -1)
	e.PodSets, e.Placements = y.sets, y.places
	s.updateReserved(e, 1)
	s.admission.Shrink(e.ID, e.PodSets, e.Placements)
	s.endGiveUp(e)
	for _, set := range e.PodSets {
		delete(e.disruption.discounted, set.Name) // who was to go has gone
	}
	s.recordPlaces(e)
	s.emitChanged(e, now)
	s.emitCommand(e, event.Present, now)
	s.shrink(e, now) // more may have gone meanwhile
}
