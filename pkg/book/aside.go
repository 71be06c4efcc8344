package book

import (
	"fmt"
	"time"

	"muster.dev/muster/pkg/admission"
	"muster.dev/muster/pkg/workload"
)

// AsideLevel says how far a workload is kept out of decisions.
type AsideLevel int

// Levels, from the least to the most.
const (
	// AsideHeld: a waiting workload is not admitted before Until, and the places of
	// a started one do not change.
	AsideHeld AsideLevel = iota + 1
	// AsideFailed: a waiting workload fails. A started one is kept, as below.
	AsideFailed
	// AsideKept: nothing of the workload is written any more, it is part of no
	// decision, and what it holds stays charged.
	AsideKept
)

// Aside sets a workload, or a node, apart from all others because the database
// refuses to store what was decided about it.
type Aside struct {
	Workload workload.ID `json:"workload,omitempty"`
	// Node, when it is not empty, is a node whose row cannot be stored. Nothing new
	// goes there, and what is stored of it stays.
	Node  admission.NodeKey `json:"node,omitzero"`
	Level AsideLevel        `json:"level,omitempty"`
	// Until is when a held workload is tried again; zero for not by itself.
	Until time.Time `json:"until,omitzero"`
	// Attempt of a started workload whose places stay; another attempt is free.
	Attempt int `json:"attempt,omitempty"`
	// Tries counts how often the workload was set aside.
	Tries int `json:"tries,omitempty"`
	// Why is what the database said.
	Why string `json:"why"`
}

// Reason is what the workload is told.
func (a *Aside) Reason() *workload.Reason {
	message := "the database refuses to store what was decided: " + plain(a.Why)
	if !a.Until.IsZero() {
		message += fmt.Sprintf("; it is tried again at %s", a.Until.UTC().Format(time.RFC3339))
	}
	return &workload.Reason{Kind: workload.ReasonNotStorable, Message: message}
}

// SetAside keeps a workload or a node out of decisions from now on. It holds until
// the end of the term: the next one is told again.
func (b *Book) SetAside(a Aside, now time.Time) {
	if a.Node.Name != "" {
		b.asideNodes[a.Node] = true
		b.offer(a.Node)
		return
	}
	b.aside[a.Workload] = &a
	if e := b.live.Get(a.Workload); e != nil {
		b.setEntryAside(e, &a, now)
	}
}

// Aside returns how a workload is set aside; nil when it is not.
func (b *Book) Aside(id workload.ID) *Aside { return b.aside[id] }

func (b *Book) setEntryAside(e *entry, a *Aside, now time.Time) {
	switch waits := e.course == nil; {
	case a.Level == AsideHeld && waits != a.Until.After(now), a.Level == AsideHeld && !waits && a.Attempt != e.Attempt:
		return // it has gone on since
	case waits && a.Level == AsideHeld:
		b.admission.Dequeue(e.ID)
		b.holdBack(e, a)
		b.enqueue(e)
		b.tell(e, now)
	case waits && a.Level == AsideFailed:
		b.admission.Dequeue(e.ID)
		b.finish(e, workload.Failed, a.Reason(), now)
	case waits:
		b.admission.Dequeue(e.ID)
		e.Reason = a.Reason()
	case a.Level == AsideHeld:
		e.fixed = true
		b.stopGrowing(e)
		e.yield = nil
	default:
		b.stopGrowing(e)
		b.admission.Keep(e.ID)
		e.Reason = a.Reason()
	}
	delete(b.lazy, e.ID)
}

// holdBack has a waiting workload tried again later.
func (b *Book) holdBack(e *entry, a *Aside) {
	if a.Until.After(e.NotBefore) {
		e.NotBefore = a.Until
	}
	e.Reason = a.Reason()
}

// kept reports whether nothing of a workload may be written.
func (b *Book) kept(e *entry) bool {
	a := b.aside[e.ID]
	return a != nil && (a.Level == AsideKept || a.Level == AsideFailed && e.course != nil)
}

// IsKept reports whether nothing of a live workload may be written, so that what is
// asked of it cannot be done.
func (b *Book) IsKept(id workload.ID) bool {
	e := b.live.Get(id)
	return e != nil && b.kept(e)
}

// Record returns a live workload.
func (b *Book) Record(id workload.ID) (record workload.Record, live bool) {
	if e := b.live.Get(id); e != nil {
		return e.Record, true
	}
	return record, false
}

// stay says that a gang cannot get other places.
func (b *Book) stay(e *entry, why string, now time.Time) {
	reason := b.aside[e.ID].Reason()
	reason.Message = why + ", but its places stay as they are: " + reason.Message
	if e.Reason == nil || e.Reason.Message != reason.Message {
		e.Reason = reason
		b.tell(e, now)
	}
}
