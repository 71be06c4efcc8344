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
func (m *State) SetLimits(limits Limits) { m.limits = limits }

// limitReached says why one more workload cannot be taken in now; nil when it can. It is
// not stored, so the same submission may come again.
func (m *State) limitReached(queue string) *workload.Reason {
	most := m.limits.InQueue
	if own := m.queues[queue].Rules.Limits.Workloads; own > 0 && (most == 0 || own < most) {
		most = own
	}
	switch {
	case most > 0 && m.liveIn[queue] >= most:
		return &workload.Reason{
			Kind: workload.ReasonFull,
			Message: fmt.Sprintf("queue %q is full: it has %d live workloads, at most %d are allowed; submit again later",
				queue, m.liveIn[queue], most),
		}
	case m.limits.Live > 0 && m.live.Len() >= m.limits.Live:
		return &workload.Reason{
			Kind:    workload.ReasonFull,
			Message: fmt.Sprintf("Muster is full: it has %d live workloads, at most %d are allowed; submit again later", m.live.Len(), m.limits.Live),
		}
	}
	return nil
}

// exceededLimit says what the submission asks for that its queue does not allow; nil for
// nothing.
func (m *State) exceededLimit(w *workload.Workload, class string, manifest []byte) *workload.Reason {
	rules := m.queues[w.Queue].Rules
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
