package admission

import (
	"cmp"
	"fmt"
	"time"

	"muster.dev/muster/pkg/quota"
	"muster.dev/muster/pkg/workload"
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
	switch c := w.claimed(s); {
	case w.held != nil:
		return w.held
	case c != nil:
		return c.reason()
	case w.bucket == nil:
		return &workload.Reason{
			Kind:    workload.ReasonBackoff,
			Message: "it is tried again at " + w.NotBefore.UTC().Format(time.RFC3339),
		}
	case w.bucket.atOpen < 0 && (!w.queue.strict() || w.queue.claims == 0 && w.queue.all.list[0] == w.bucket && w.bucket.head() == w):
		if h := s.holdOf(w); h != nil && h.cluster != "" && w.bucket.lacks != nil {
			return h.reasonHead(w.bucket.reason)
		}
		if h := w.bucket.behind; h != nil && h.cluster != "" && w.bucket.reason.Kind == workload.ReasonBehindHead {
			return h.reasonBehind(w) // not as its head reads it
		}
		return w.bucket.reason
	case w.queue.strict():
		return &workload.Reason{
			Kind:    workload.ReasonBehindHead,
			Message: fmt.Sprintf("the head of queue %q waits, and nobody passes it: the queue is %s", w.queue.name, quota.StrictFIFO),
		}
	case w.queue.closed(s.decided):
		return &workload.Reason{
			Kind: workload.ReasonBehindHead,
			Message: fmt.Sprintf("%s, the head of queue %q (%s), has waited for quota for more than %s, and nobody passes it any more",
				nameFor(w.Workload, w.queue.all.list[0].head().Workload), w.queue.name, quota.Backfill, w.queue.patience()),
		}
	}
	return &workload.Reason{Kind: workload.ReasonUnknown, Message: "no decision has looked at it yet"}
}

// heldBy returns why nothing of the workload's queue is admitted, nil when it is.
func (s *State) heldBy(w *Waiting) *workload.Reason {
	held := func(what, name, policy string) *workload.Reason {
		if policy == "" || policy == quota.StopNone {
			return nil
		}
		return &workload.Reason{Kind: workload.ReasonHeld, Message: fmt.Sprintf("%s %q is held (stopPolicy %s)", what, name, policy)}
	}
	if why := held("clusterQueue", w.queue.name, w.queue.quota.StopPolicy); why != nil {
		return why
	}
	if local := s.tree.Local(w.Workload.Namespace, w.Workload.Queue); local != nil {
		return held("localQueue", local.Namespace+"/"+local.Name, local.StopPolicy)
	}
	return nil
}

// Position returns the place of a workload among the waiting of its queue, from
// 1; 0 when it does not wait there.
func (s *State) Position(id workload.ID) int {
	w := s.waiting.Get(id)
	if w == nil || w.bucket == nil {
		return 0
	}
	position := 1
	for _, b := range w.queue.all.list {
		if b.priority > w.Workload.Priority {
			position += len(b.members)
		} else if b.priority == w.Workload.Priority {
			for _, other := range b.members {
				if cmp.Compare(other.Order, w.Order) < 0 {
					position++
				}
			}
		}
	}
	return position
}
