package admission

import (
	"fmt"
	"slices"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// Asked is what nodes have been asked for: a waiting workload that has it holds its quota
// and no places.
type Asked struct {
	Cluster string
	Flavors []workload.PodSetFlavors // by which its quota is held
	// Ready: the nodes are said to be there.
	Ready bool
}

// takeQuota takes the quota of a workload that has asked for nodes.
func (s *State) takeQuota(w *Waiting) {
	w.holds = quota.ChargesOf(w.Workload.PodSets, w.Asked.Flavors)
	w.queue.quota.Allocate(w.holds)
	i, _ := slices.BinarySearchFunc(s.asked, w, before)
	s.asked = slices.Insert(s.asked, i, w)
}

// giveBackQuota gives the quota back, if the workload holds any.
func (s *State) giveBackQuota(w *Waiting) {
	i := slices.Index(s.asked, w)
	if i < 0 {
		return
	}
	s.asked = slices.Delete(s.asked, i, i+1)
	w.queue.quota.Release(w.holds)
	w.holds = nil
}

// Provisioned says that the nodes are there that a waiting workload has asked for.
func (s *State) Provisioned(id workload.ID) {
	if w := s.waiting.Get(id); w != nil && w.Asked != nil && !w.Asked.Ready {
		ready := *w.Asked // copies of the state share it
		ready.Ready = true
		w.Asked = &ready
		s.events.provisioned = true
	}
}

// reasonOfAsked is AskedReason for one whose request was made in an earlier term.
func (w *Waiting) reasonOfAsked() *workload.Reason {
	if w.lacks != nil {
		return w.lacks
	}
	return &workload.Reason{Kind: workload.ReasonProvisioning, Message: fmt.Sprintf("nodes are asked for in cluster %s; its quota is reserved", w.Asked.Cluster)}
}
