package admission

import (
	"cmp"
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// Reason returns why a workload waits, as of the last decision; nil when it does
// not wait.
func (s *State) Reason(id workload.ID) *workload.Reason {
	if w := s.waiting.Get(id); w != nil {
		return s.reason(w)
	}
	return nil
}

func (s *State) reason(w *Waiting) *workload.Reason {
	switch n := w.nomination(s); {
	case w.held != nil:
		return w.held
	case n != nil:
		return n.reason()
	case w.Asked != nil:
		return w.reasonOfAsked()
	case w.class == nil:
		return &workload.Reason{
			Kind:    workload.ReasonBackoff,
			Message: "back-off: the workload is tried again at " + w.NotBefore.UTC().Format(time.RFC3339),
		}
	case w.class.atOpen < 0 && !s.isBehind(w):
		if r := s.reservationOf(w); r != nil && r.cluster != "" && w.class.unplaced.flavoredSignature != nil {
			return r.reasonOfHead(w.class.reason)
		}
		if r := w.class.blockedBy; r != nil && r.cluster != "" && w.class.reason.Kind == workload.ReasonBehindHead {
			return r.reasonBehindHead(w) // worded for this workload, not for its head
		}
		return w.class.reason
	case s.isBehind(w):
		return s.reasonBehind(w)
	}
	return &workload.Reason{Kind: workload.ReasonPending, Message: "the next decision considers the workload"}
}

// Position returns the position of a workload in its queue, from 1; 0 when it does not
// wait there.
func (s *State) Position(id workload.ID) int {
	w := s.waiting.Get(id)
	if w == nil || w.class == nil {
		return 0
	}
	position := 1
	for _, class := range w.queue.all.list {
		if by := byUse(class.first(), w); by != 0 {
			if by < 0 {
				position += len(class.members)
			}
		} else if class.priority > w.Workload.Priority {
			position += len(class.members)
		} else if class.priority == w.Workload.Priority {
			for _, other := range class.members {
				if cmp.Compare(other.Order, w.Order) < 0 {
					position++
				}
			}
		}
	}
	return position
}
