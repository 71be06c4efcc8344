package state

import (
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/spec/workload"
)

// QuarantineLevel is how far a workload is kept out of decisions.
type QuarantineLevel int

// Levels, from the least to the most.
const (
	// QuarantineHeld: a waiting workload is not admitted before Until, and the places of
	// a started one do not change.
	QuarantineHeld QuarantineLevel = iota + 1
	// QuarantineFailed: a waiting workload fails. A started one is kept, as below.
	QuarantineFailed
	// QuarantineFrozen: nothing of the workload is written any more, it is part of no
	// decision, and what it holds stays charged.
	QuarantineFrozen
)

// Quarantined sets a workload, a node or a quota apart from all others because the database
// refuses to store what was decided about it.
type Quarantined struct {
	Workload workload.ID `json:"workload,omitempty"`
	// Node, when it is not empty, is a node whose row cannot be stored. Nothing new
	// goes there, and what is stored of it stays.
	Node  admission.NodeKey `json:"node,omitzero"`
	Level QuarantineLevel   `json:"level,omitempty"`
	// Scope, when it is not empty, is one of quota in which nothing can be used. No workload that is
	// charged to it is admitted before Until.
	Scope string `json:"scope,omitempty"`
	// Until is when a workload or a node is tried again; zero for not by itself.
	Until time.Time `json:"until,omitzero"`
	// Attempt of a started workload whose places stay; another attempt is free.
	Attempt int `json:"attempt,omitempty"`
	// Tries counts how often the workload was set aside.
	Tries int `json:"tries,omitempty"`
	// Why is the error of the database.
	Why string `json:"why"`
}

// Over reports whether what was kept out of decisions until a time is to be part of them again. A
// workload that is only held is so all the time.
func (q *Quarantined) Over(now time.Time) bool {
	return q.Level != QuarantineHeld && !q.Until.IsZero() && !q.Until.After(now)
}

// Quarantine keeps a workload, a node or a quota out of decisions from now on. It holds until
// the end of the term: the next one learns it again.
func (s *State) Quarantine(a Quarantined, now time.Time) {
	if a.Over(now) {
		return
	}
	if a.Node.Name != "" {
		s.quarantinedNodes[a.Node] = true
		s.syncNode(a.Node)
		return
	}
	if a.Scope != "" {
		s.quarantineScope(&a, now)
		return
	}
	s.quarantined[a.Workload] = &a
	if e := s.live.Get(a.Workload); e != nil {
		s.quarantineEntry(e, &a, now)
	}
}

// quarantineScope has those wait who would be charged to a quota.
func (s *State) quarantineScope(a *Quarantined, now time.Time) {
	if !a.Until.After(now) {
		return
	}
	s.quarantinedScopes[a.Scope] = a
	for _, e := range s.inOrder() {
		if e.attemptState == nil && s.quotaHold(e) == a && !s.frozen(e) {
			s.admission.Dequeue(e.ID)
			s.enqueue(e)
		}
	}
}

func (s *State) quarantineEntry(e *entry, a *Quarantined, now time.Time) {
	switch waits := e.attemptState == nil; {
	case a.Level == QuarantineHeld && waits != a.Until.After(now), a.Level == QuarantineHeld && !waits && a.Attempt != e.Attempt:
		return // it has gone on since
	case waits && a.Level == QuarantineHeld && s.removals.removing[e.ID]:
		return // nothing is admitted of it before its lost attempt is gone
	case waits && a.Level == QuarantineHeld:
		s.admission.Dequeue(e.ID)
		e.delayRetry(a)
		s.enqueue(e)
		s.emitChanged(e, now)
	case waits && a.Level == QuarantineFailed:
		s.admission.Dequeue(e.ID)
		s.finish(e, workload.Failed, a.Reason(), now)
	case waits:
		s.admission.Dequeue(e.ID)
		e.Reason = a.Reason()
	case a.Level == QuarantineHeld:
		e.placesFixed = true
		s.sizing.stopGrowing(e)
		e.scaleDown = nil
	default:
		s.sizing.stopGrowing(e)
		s.admission.Freeze(e.ID)
		e.Reason = a.Reason()
	}
	delete(s.staleReasons, e.ID)
}

// delayRetry has a waiting workload tried again later.
func (e *entry) delayRetry(a *Quarantined) {
	if a.Until.After(e.NotBefore) {
		e.NotBefore = a.Until
	}
	e.Reason = a.Reason()
}

// Refused reports whether nothing may be written of a workload that is not live: no answer about
// it, and no removal of what runs of it.
func (s *State) Refused(id workload.ID) bool { return s.refused(id) }

// IsFrozen reports whether nothing of a live workload may be written, so that what is
// asked of it cannot be done. So it is with one that could not be read.
func (s *State) IsFrozen(id workload.ID) bool {
	if e := s.live.Get(id); e != nil {
		return s.frozen(e)
	}
	return slices.ContainsFunc(s.unread, func(a Quarantined) bool { return a.Workload == id })
}

// Record returns a live workload.
func (s *State) Record(id workload.ID) (record workload.Record, live bool) {
	if e := s.live.Get(id); e != nil {
		return e.Record, true
	}
	return record, false
}
