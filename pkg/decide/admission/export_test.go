package admission

import (
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// DecideAfresh returns the plan of a decision that tries all waiting workloads. Head
// reservations stay, and the classes of the kept workloads stay blocked until an event
// reopens them. The state stays as it is.
func DecideAfresh(s *State, now time.Time, kept ...workload.ID) (plan Plan) {
	s.onRebuilt(s.firstWaiting(s.waiting.Len()), func(copied *State) {
		for _, r := range copied.reservations {
			r.stale = s.reservationOf(s.waiting.Get(r.head.Workload.ID)).stale
		}
		copied.events.clusterAdded, copied.events.capacityGrew = false, false
		for _, id := range kept {
			copied.blockLike(copied.waiting.Get(id).class, s.waiting.Get(id).class)
		}
		plan = Decide(copied, now)
	})
	return plan
}

// blockLike blocks a class as the one of another state is.
func (s *State) blockLike(class, like *equivalenceClass) {
	if class.atOpen < 0 {
		return // two of one class
	}
	s.block(class, like.reason)
	like.queue.blocked.settle()
	class.retryAt, class.overQuota, class.triedPreemption, class.hopelessAt = like.retryAt, like.overQuota, like.triedPreemption, like.hopelessAt
	class.sparing = like.sparing
	if like.unplaced.flavoredSignature != nil {
		class.unplaced = unplaced{s.matching(class.first(), like.unplaced.flavoredSignature), like.unplaced.flavors}
	}
	if like.blockedBy != nil {
		s.reservationOf(s.waiting.Get(like.blockedBy.head.Workload.ID)).block(class)
	}
	class.queue.blocked.refresh(class)
}

// Blocked counts the blocked classes of a state, and how many of them have been looked at so far
// because of events.
func Blocked(s *State) (classes, looked int) {
	for _, q := range s.sorted {
		looked += int(q.blocked.looked)
		for _, class := range q.all.list {
			if class.atOpen < 0 {
				classes++
			}
		}
	}
	return classes, looked
}

// Flavored counts what a state keeps of searches for places.
func Flavored(s *State) int { return len(s.flavored) }

// Judged counts the answers of State.beyond that are kept.
func Judged(s *State) int { return len(s.namespaces.judged) }

// CopyDiffers returns in which field a copy of the state differs from it,
// empty when there is none.
func CopyDiffers(s *State) (path string) {
	s.whatIf(s.clone, func(copied *State) {
		path = s.differs(copied)
	})
	return path
}

// OnCopy returns the plan of a decision on a copy of the state.
func OnCopy(s *State, now time.Time) (plan Plan) {
	s.whatIf(s.clone, func(copied *State) { plan = Decide(copied, now) })
	return plan
}

// Victims notes gangs as a decision does that has started them. It returns how many of
// them are kept for comparison, and a function that reports whether a waiting workload
// may evict one of them, by those kept and by all.
func Victims(s *State, now time.Time, started []Started) (kept int, by func(Waiting) (kept, all bool)) {
	d := &decision{state: s, now: now}
	for i := range started {
		started[i].queue = s.queue(started[i].Queue)
		d.noteEvictable(&started[i])
	}
	kept = len(d.effects.evictable)
	return kept, func(w Waiting) (few, all bool) {
		w.queue = s.queue(w.Queue)
		for _, gangs := range d.effects.evictable {
			few = few || w.queue.mayEvict(gangs.easiest).has(classRank{w.Workload.Priority, w.Order, 1})
		}
		for i := range started {
			all = all || w.mayEvictByAnyPolicy(&started[i])
		}
		return few, all
	}
}

// HeadReservation is the reservation of the head of a Backfill queue.
type HeadReservation struct {
	Workload   workload.ID
	Cluster    string
	Placements []workload.Placement
	// Start is the latest start of the workload if the gangs it waits for keep to
	// their declared run times; zero when that is not known.
	Start time.Time
	// After are the gangs whose end it waits for.
	After []workload.ID
}

// HeadReservations returns the reservations as of the last decision.
func (s *State) HeadReservations() []HeadReservation {
	var shown []HeadReservation
	for _, r := range s.reservations {
		if r.cluster != "" {
			shown = append(shown, HeadReservation{r.head.Workload.ID, r.cluster, r.places, r.start, idsOf(r.after)})
		}
	}
	return shown
}

// NeverOf returns what is kept of why a workload never fits; nil when it may.
func NeverOf(s *State, id workload.ID) *workload.Reason { return s.waiting.Get(id).class.never }

// KeptSearches returns the plan of a decision, and how often it looked for what is kept for gangs
// that have asked for nodes.
func KeptSearches(s *State, now time.Time) (Plan, int) {
	d := &decision{state: s, now: now}
	d.decide()
	return d.plan, d.keepers.searches
}

// UseUp uses up the steps that a queue may search for at that time.
func UseUp(s *State, queue string, now time.Time) { LeaveSteps(s, queue, 0, now) }

// LeaveSteps leaves a queue that many steps to search for at that time.
func LeaveSteps(s *State, queue string, steps int, now time.Time) {
	s.queue(queue).allowance = allowance{steps: steps, perSecond: searchPerSecond, at: now}
}

// LeaveAllSteps leaves all queues together that many steps to search for at that time.
func LeaveAllSteps(s *State, steps int, now time.Time) {
	s.allowance = allowance{steps: steps, perSecond: allPerSecond, at: now}
}

// CandidatesFor returns how many gangs a waiting workload of a queue may evict.
func CandidatesFor(s *State, queue string, priority int32, now time.Time) int {
	d := &decision{state: s, now: now}
	w := &Waiting{Workload: &workload.Workload{ID: "asks", Priority: priority}, queue: s.queue(queue), class: &equivalenceClass{queue: s.queue(queue)}}
	return len(d.candidates(w, quota.Assess{Assignment: &quota.Assignment{}}, withinQueue))
}

// NoteEvicted notes that a gang was evicted for another one.
func NoteEvicted(s *State, preemptor, victim workload.ID) { s.evictedFor.add(preemptor, victim) }

// Exempt counts the blocked classes that are looked at because their first gang may not evict one
// that is evicted now.
func Exempt(s *State, evicted workload.ID, now time.Time) int {
	d := &decision{state: s, now: now}
	return len(d.exempt([]Eviction{{Workload: evicted}}))
}

// RegretOf returns the regret of a started gang.
func RegretOf(s *State, id workload.ID, now time.Time) (accelerators, pods int64) {
	r := (&decision{state: s, now: now}).regretOf(s.started[id])
	return r.accelerators, r.pods
}
