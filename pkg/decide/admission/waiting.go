package admission

import (
	"cmp"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// Waiting is a workload in a queue.
type Waiting struct {
	Workload *workload.Workload
	// Order is the submission's place among all submissions; an evicted workload
	// keeps it.
	Order int64
	// Queue is its ClusterQueue; empty means that of the LocalQueue that
	// Workload.Queue names in the workload's namespace, and where there is none
	// the ClusterQueue of that name.
	Queue string
	// NotBefore is the end of its back-off.
	NotBefore time.Time
	// Since is when it was submitted, and RunTime its declared run time; zero where
	// unknown. Backfill uses them.
	Since   time.Time
	RunTime time.Duration
	// Reported: the caller has its reason, so Decide names it in Plan.Waits only when
	// the reason changes.
	Reported bool
	// Never: that reason is ReasonNeverFits.
	Never bool
	// Nominated: gangs were evicted for it in an earlier term. It is tried before all
	// others, so that it gets what they free.
	Nominated bool
	// Grows: these are the pods that a started gang of the same id asks for beyond its
	// own; see State.Grow.
	Grows bool
	// Asked: it waits for nodes that are asked for (see State.Provisioned), or for checks.
	Asked *Asked
	// Ready are the AdmissionChecks that have agreed.
	Ready []string
	// Tried are the flavors by which no nodes are asked for, because there were none.
	Tried [][]workload.PodSetFlavors
	// TriedClusters are those in which no nodes are asked for by some flavors, for the same reason.
	TriedClusters []workload.TriedCluster
	// Failures counts the requests for nodes that have failed since its last admission.
	Failures int
	// Held is why it alone is not admitted; empty when it may be.
	Held string

	holds     []quota.Charge   // while it is in State.asked, unless Asked.NoQuota
	lacks     *workload.Reason // why it has no places on the nodes that have come
	defaulted bool             // Workload is another than the caller's, with defaults of its namespace
	impatient bool             // its patience is over, in a queue where that matters
	queue     *queue
	local     *localQueue // while it is in a class, where the queue is ordered by use
	signature *podSetSignature
	class     *equivalenceClass // nil while held or backing off, or nominated
	index     int               // in the class
	held      *workload.Reason
	beyond    []string // clusters that would refuse its pods, see State.beyond
}

// Enqueue adds a waiting workload, or replaces it. Workloads with equal pod sets share
// them in memory from then on.
func (s *State) Enqueue(w Waiting) {
	s.removeWaiting(w.Workload.ID)
	s.addDemand(s.enqueue(w))
}

// enqueue adds a workload that does not wait and whose demand the fleets have.
func (s *State) enqueue(w Waiting) *Waiting {
	added := &w
	if added.Queue == "" {
		added.Queue = s.clusterQueue(w.Workload)
	}
	added.queue = s.queue(added.Queue)
	s.applyDefaults(added)
	added.signature = s.signatureOf(w.Workload)
	added.signature.refs++
	added.beyond = s.beyond(added)
	s.waiting.Put(added)
	if w.Held != "" {
		s.held++
	}
	s.fresh = append(s.fresh, added)
	if len(s.fresh) > 2*s.waiting.Len()+spareFresh { // a state without decisions
		s.fresh = slices.DeleteFunc(s.fresh, func(f *Waiting) bool { return !s.waiting.Has(f) })
	}
	switch added.held = s.heldBy(added); {
	case added.held != nil:
	case added.Asked != nil:
		s.reserveQuota(added)
	case !w.NotBefore.IsZero() && !w.Nominated: // a nomination ended its back-off, by the clock of an earlier leader
		i, _ := slices.BinarySearchFunc(s.backingOff, added, earlier)
		s.backingOff = slices.Insert(s.backingOff, i, added)
	default:
		s.addToClass(added)
	}
	return added
}

// SetReported records whether the caller has the present reason of a waiting workload.
func (s *State) SetReported(id workload.ID, reported bool) {
	if w := s.waiting.Get(id); w != nil {
		w.Reported = reported
	}
}

// heldBy returns the reason of a held workload or queue, of a namespace that the queue does not
// select, or of LimitRanges that pods are beyond; nil when there is none.
func (s *State) heldBy(w *Waiting) *workload.Reason {
	if w.Held != "" {
		return &workload.Reason{Kind: workload.ReasonHeld, Message: w.Held}
	}
	if why := s.tree.HeldBy(w.Workload.Namespace, w.Workload.Queue, w.queue.name); why != "" {
		return &workload.Reason{Kind: workload.ReasonHeld, Message: why}
	}
	if why := s.notSelected(w); why != "" {
		return &workload.Reason{Kind: workload.ReasonHeld, Message: why}
	}
	if why := s.beyondLimits(w); why != "" {
		return &workload.Reason{Kind: workload.ReasonHeld, Message: why}
	}
	return nil
}

// bothHeld reports whether neither is held, or both are by the same.
func bothHeld(a, b *workload.Reason) bool {
	return (a == nil) == (b == nil) && (a == nil || a.Message == b.Message)
}

// notSelected returns why the namespace of a workload may not use its queue in any cluster;
// empty when it may in one, or when there is no cluster yet.
func (s *State) notSelected(w *Waiting) string {
	if w.queue.quota.Selector() == nil {
		return ""
	}
	namespace, why := w.Workload.Namespace, ""
	for _, cluster := range s.candidates(w) {
		if s.mayUse(w.queue, namespace, cluster) {
			return ""
		}
		if why == "" {
			why = s.whyNotSelected(w.queue, namespace, cluster)
		}
	}
	return why
}

// beyondLimits returns why each cluster that may take the workload would refuse its pods; empty
// when one would not, or when there is no cluster yet.
func (s *State) beyondLimits(w *Waiting) string {
	beyond, why := s.beyond(w), ""
	if len(beyond) == 0 {
		return ""
	}
	for _, cluster := range s.candidates(w) {
		if _, selects := s.selects(w, cluster); !selects || !s.tree.Takes(cluster, w.queue.name) || s.tree.Left(cluster) || !s.mayUse(w.queue, w.Workload.Namespace, cluster) || s.served[cluster].lacking(w.Workload.Needs()) != "" {
			continue
		}
		if !slices.Contains(beyond, cluster) {
			return ""
		}
		if why == "" {
			why = s.whyBeyond(w.Workload, cluster) + "; it waits until the LimitRange allows it"
		}
	}
	return why
}

// HeldReason returns why a workload would be held if it waited now: it is held by its queue, its
// namespace is not selected, or its pods are beyond LimitRanges. nil is not held.
func (s *State) HeldReason(w *workload.Workload) *workload.Reason {
	return s.heldBy(&Waiting{Workload: w, queue: s.queue(s.clusterQueue(w))})
}

// HeldBy returns what keeps workloads of a queue in a namespace from being admitted; empty
// when nothing does.
func (s *State) HeldBy(namespace, queue string) string {
	return s.tree.HeldBy(namespace, queue, s.clusterQueue(&workload.Workload{Namespace: namespace, Queue: queue}))
}

// spareFresh is how many of the fresh may have left before the list is cleaned.
const spareFresh = 1000

func earlier(a, b *Waiting) int {
	return cmp.Or(a.NotBefore.Compare(b.NotBefore), cmp.Compare(a.Order, b.Order), cmp.Compare(a.Workload.ID, b.Workload.ID))
}

// Dequeue removes a waiting workload for good, and withdraws its nomination.
func (s *State) Dequeue(id workload.ID) {
	s.removeWaiting(id)
	s.evictedFor.forgetVictims(id)
}

func (s *State) removeWaiting(id workload.ID) {
	w := s.waiting.Get(id)
	if w == nil {
		return
	}
	if i := slices.IndexFunc(s.nominations, func(n *nomination) bool { return n.waiting == w }); i >= 0 {
		s.withdraw(s.nominations[i])
	}
	reserves := w.queue.reserves(s.decidedAt)
	if s.releaseQuota(w) {
		s.noteQuotaFreed(w.queue)
		s.endShown(w)
	}
	s.waiting.Delete(id)
	if w.Held != "" {
		s.held--
	}
	s.removeDemand(w)
	if i, found := slices.BinarySearchFunc(s.backingOff, w, earlier); found {
		s.backingOff = slices.Delete(s.backingOff, i, i+1)
	}
	s.removeFromClass(w)
	if w.queue.strict() || w.queue.backfills() || reserves {
		s.noteQuotaFreed(w.queue) // it may have a new head
	}
	s.dropSignature(w.signature)
}

// resubmitted returns the waiting workload as a caller would enqueue it now.
func (w *Waiting) resubmitted(s *State) Waiting {
	c := *w
	c.queue, c.signature, c.class, c.held, c.index, c.holds, c.local, c.beyond = nil, nil, nil, nil, 0, nil, nil, nil
	if w.class != nil || w.nomination(s) != nil {
		c.NotBefore = time.Time{} // its back-off is over
	}
	return c
}
