package admission

import (
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// Asked is what a waiting workload waits for outside its class: nodes that are asked for, or
// AdmissionChecks. It holds its quota and no places.
type Asked struct {
	Cluster string                   // of the nodes that are asked for
	Flavors []workload.PodSetFlavors // by which its quota is held
	Pods    []workload.PodCount      // for which these are; the others have places on nodes that exist
	// Since is when they were asked for.
	Since time.Time
	// Ready: the nodes are said to be there, or its pods are shown; since when it waits for its
	// places on them.
	Ready      bool
	ReadySince time.Time
	// Placeholders: it shows itself as pods, for an autoscaler to add nodes.
	Placeholders bool
	// Checks is the reason of a workload that waits for checks; nil for one that waits for
	// nodes. NoQuota: gangs have to be evicted for it first, so there is no quota to hold.
	Checks  *workload.Reason
	NoQuota bool
}

// reserveQuota reserves the quota of a workload that waits for nodes or checks.
func (s *State) reserveQuota(w *Waiting) {
	if !w.Asked.NoQuota {
		w.holds = quota.ChargesOf(w.Workload.PodSets, w.Asked.Flavors)
		w.queue.quota.Allocate(w.holds)
	}
	i, _ := slices.BinarySearchFunc(s.asked, w, before)
	s.asked = slices.Insert(s.asked, i, w)
}

// releaseQuota ends that, and releases the quota that the workload holds. It reports whether
// the workload waited so.
func (s *State) releaseQuota(w *Waiting) bool {
	i := slices.Index(s.asked, w)
	if i < 0 {
		return false
	}
	s.asked = slices.Delete(s.asked, i, i+1)
	w.queue.quota.Release(w.holds)
	w.holds = nil
	return true
}

// Provisioned says that the nodes are there that a waiting workload has asked for, and since when
// it waits for its places on them: that may begin again.
func (s *State) Provisioned(id workload.ID, since time.Time) {
	if w := s.waiting.Get(id); w != nil && w.Asked != nil && !(w.Asked.Ready && w.Asked.ReadySince.Equal(since)) {
		ready := *w.Asked // copies of the state share it
		ready.Ready, ready.ReadySince = true, since
		w.Asked = &ready
		s.events.provisioned = true
	}
}

// SetAskedReason records why a workload waits that waits for checks.
func (s *State) SetAskedReason(id workload.ID, why *workload.Reason) {
	if w := s.waiting.Get(id); w != nil && w.Asked != nil && w.Asked.Checks != nil {
		explained := *w.Asked // copies of the state share it
		explained.Checks = why
		w.Asked = &explained
	}
}

// reasonOfAsked is why a workload waits that waits for checks, and AskedReason for one whose
// request for nodes was made in an earlier term.
func (w *Waiting) reasonOfAsked() *workload.Reason {
	if w.Asked.Checks != nil {
		return w.Asked.Checks
	}
	if w.lacks != nil {
		return w.lacks
	}
	message := "nodes are asked for in cluster %s; its quota is reserved"
	if w.Asked.Placeholders {
		message = "it is shown as placeholder pods in cluster %s; its quota is reserved"
	}
	return &workload.Reason{Kind: workload.ReasonProvisioning, Message: fmt.Sprintf(message, w.Asked.Cluster)}
}
