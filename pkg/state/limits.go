package state

import (
	"fmt"
	"strings"

	"muster.dev/muster/pkg/manifest/podpolicy"
	"muster.dev/muster/pkg/spec/workload"
)

// Limits bound the memory of a state. Zero is no limit.
type Limits struct {
	// Live is the most workloads that have not ended, InQueue those of one queue.
	Live, InQueue int
}

// SetLimits sets the limits for what is submitted from now on.
func (s *State) SetLimits(limits Limits) { s.limits = limits }

// limitReached returns why one more workload cannot be taken in now; nil when it can. It is
// not stored, so the same submission may come again.
func (s *State) limitReached(queue string) *workload.Reason {
	most := s.limits.InQueue
	if own := s.queues[queue].Rules.Limits.Workloads; own > 0 && (most == 0 || own < most) {
		most = own
	}
	switch {
	case most > 0 && s.liveIn[queue] >= most:
		return &workload.Reason{
			Kind: workload.ReasonFull,
			Message: fmt.Sprintf("queue %q is full: it has %d live workloads, at most %d are allowed; submit again later",
				queue, s.liveIn[queue], most),
		}
	case s.limits.Live > 0 && s.live.Len() >= s.limits.Live:
		return &workload.Reason{
			Kind:    workload.ReasonFull,
			Message: fmt.Sprintf("Muster is full: it has %d live workloads, at most %d are allowed; submit again later", s.live.Len(), s.limits.Live),
		}
	}
	return nil
}

// exceededLimit returns what the submission asks for that its queue does not allow; nil for
// nothing.
func (s *State) exceededLimit(w *workload.Workload, class string, manifest []byte) *workload.Reason {
	rules := s.queues[w.Queue].Rules
	err := rules.Exceeded(w, class)
	if err == nil {
		err = podpolicy.CheckGrace(rules.Grace(), manifest)
	}
	if err == nil {
		return nil
	}
	return &workload.Reason{
		Kind:    workload.ReasonForbidden,
		Message: sanitize(strings.ReplaceAll(err.Error(), "\n", "; also: ")) + " (limits are set in queue-manager's queues file)",
	}
}
