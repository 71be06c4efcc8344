package book

import (
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/workload"
)

// yield is what a gang that has become smaller keeps. The dispatcher is commanded
// to send pods there only, and what is given up is freed when it has said that it
// does: or it might, before it hears of it, send a new pod to a place that is
// somebody else's already. It is not stored: a new term asks anew.
type yield struct {
	id   string // of the command
	sets []workload.PodSet
	kept []workload.Placement
	// obeyed: the dispatcher has said so.
	obeyed bool
}

// shrink has a gang give up the places of pods that are gone and shall not come
// back.
func (b *Book) shrink(e *entry, now time.Time) {
	if e.commandedAway || e.Phase == workload.Evicting || e.Phase == workload.Cancelling {
		return // all of it goes
	}
	sets, kept, less := b.smaller(e)
	switch {
	case e.yield != nil && less && within(kept, e.yield.kept):
		b.finishYield(e, now)
	case less:
		e.yield = &yield{sets: sets, kept: kept}
		b.desire(e, event.Present, now)
	case e.yield != nil: // they are wanted again
		e.yield = nil
		b.desire(e, event.Present, now)
	}
}

// smaller returns what a gang keeps at the sizes that places are kept for now. A
// place with a pod is kept, and so it is not less as long as pods are there. Of a
// running gang nothing is given up while some of its pods are not bound, for it is
// not known then whose place is whose.
func (b *Book) smaller(e *entry) (sets []workload.PodSet, kept []workload.Placement, less bool) {
	g := b.gangs[gangKey{e.Cluster, e.ID}]
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
		holding, unbound := g.of(set.Name, e.Attempt)
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

// of counts the pods of a set by the node that they take room on, and reports
// whether there are others that may come to.
func (g *gang) of(set string, attempt int) (holding map[string]int, unbound bool) {
	holding = map[string]int{}
	for _, pod := range g.pods {
		switch {
		case pod.PodSet != set || pod.Attempt != attempt:
		case pod.Holds():
			holding[pod.Node]++
		case pod.Node == "" && !pod.Deleting && pod.Phase != "Succeeded" && pod.Phase != "Failed":
			unbound = true
		}
	}
	return holding, unbound
}

// within reports whether all places are among others.
func within(places, others []workload.Placement) bool {
	return !slices.ContainsFunc(places, func(p workload.Placement) bool {
		i := slices.IndexFunc(others, func(o workload.Placement) bool { return o.PodSet == p.PodSet && o.Node == p.Node })
		return i < 0 || others[i].Pods < p.Pods
	})
}

// yielded takes in by which command to give places up the dispatcher works; empty
// for none.
func (b *Book) yielded(e *entry, id string, now time.Time) {
	switch {
	case e.commandedAway || e.Phase == workload.Evicting || e.Phase == workload.Cancelling:
	case e.yield != nil && e.yield.id == id:
		e.yield.obeyed = true
	case e.yield == nil && id != "":
		// Of an earlier term, or wanted again meanwhile: it shall know what the gang
		// has.
		b.desire(e, event.Present, now)
	}
}

// finishYield frees what the dispatcher does not use any more.
func (b *Book) finishYield(e *entry, now time.Time) {
	y := e.yield
	if !y.obeyed {
		return
	}
	e.yield = nil
	b.charge(e, -1)
	e.PodSets, e.Placements = y.sets, y.kept
	b.charge(e, 1)
	b.admission.Shrink(e.ID, e.PodSets, e.Placements)
	for _, set := range e.PodSets {
		delete(e.broken.excused, set.Name) // who was to go has gone
	}
	b.moved(e)
	b.tell(e, now)
	b.desire(e, event.Present, now)
	b.shrink(e, now) // more may have gone meanwhile
}

// shown are the sizes and places that the dispatcher is told of.
func (e *entry) shown() ([]workload.PodSet, []workload.Placement) {
	if e.yield != nil {
		return e.yield.sets, e.yield.kept
	}
	return e.PodSets, e.Placements
}

// yieldID names a command to give places up, for ever.
func (b *Book) yieldID(order int64) string { return fmt.Sprintf("%d-%d", b.epoch, order) }
