package admission

import (
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// nomination is the places and the quota of a waiting workload while its victims are
// torn down, as nominatedNodeName is for one pod. They are allocated from the decision
// on, so that no other gang gets what the victims free. Until the victims are gone,
// their nodes are over-committed.
type nomination struct {
	waiting  *Waiting
	assess   quota.Assess
	flavored *flavoredSignature
	cluster  string
	places   []workload.Placement
	// awaits are the gangs that have to be gone first.
	awaits []*Started
	// choice is what the evictions for it cost; nil without any. cut: there may be
	// cheaper ones.
	choice *workload.PreemptionChoice
	cut    bool
	// retryAt is when its places are searched for again after that was put off.
	retryAt time.Time
}

// nominate allocates the places and quota of a nomination.
func (d *decision) nominate(n *nomination) {
	s, w := d.state, n.waiting
	s.removeFromClass(w)
	s.removeDemand(w)
	s.fleet(n.cluster).Allocate(w.Workload, n.places)
	w.queue.quota.Allocate(n.assess.Charges)
	w.queue.nominations++
	i, _ := slices.BinarySearchFunc(s.nominations, n, func(a, b *nomination) int { return before(a.waiting, b.waiting) })
	s.nominations = slices.Insert(s.nominations, i, n)
	d.invalidateReservations(w, n.cluster, n.places)
	d.noteTaken(w, n.cluster, n.places)
	d.noteUsage(w.queue, n.assess)
}

// withdraw ends a nomination and releases its places and quota.
func (s *State) withdraw(n *nomination) {
	s.nominations = slices.DeleteFunc(s.nominations, func(other *nomination) bool { return other == n })
	n.waiting.queue.nominations--
	s.addDemand(n.waiting)
	s.releaseAll(n.waiting.queue, n.cluster, n.waiting.Workload, n.places, n.assess.Charges)
}

func (n *nomination) reason() *workload.Reason {
	cause := &workload.PreemptionCause{Cut: n.cut, Choice: n.choice}
	for _, g := range n.awaits {
		cause.Victims = append(cause.Victims, g.Workload.ID)
	}
	who, frees := fmt.Sprintf("%d workloads", len(n.awaits)), "they free"
	if len(n.awaits) == 1 {
		who, frees = nameFor(n.waiting.Workload, n.awaits[0].Workload), "it frees"
	}
	return &workload.Reason{
		Kind:       workload.ReasonWaitingForEviction,
		Message:    fmt.Sprintf("waiting for the removal of %s; what %s is reserved for this workload", who, frees),
		Preemption: cause, Foreign: foreign(n.waiting.Workload, workloadsOf(n.awaits)...),
	}
}

// nodesFree reports whether the nodes of the nomination are there and not
// over-committed in what it asks for.
func (n *nomination) nodesFree(s *State) bool {
	fleet := s.fleet(n.cluster)
	for _, p := range n.places {
		free, there := fleet.Free(p.Node)
		if !there {
			return false
		}
		for _, set := range n.flavored.w.PodSets {
			if set.Name != p.PodSet {
				continue
			}
			for name, asked := range set.Template.Requests {
				if asked > 0 && free[name] < 0 {
					return false
				}
			}
		}
	}
	return true
}
