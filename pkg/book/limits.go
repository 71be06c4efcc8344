package book

import (
	"fmt"
	"strings"

	"muster.dev/muster/pkg/podpolicy"
	"muster.dev/muster/pkg/workload"
)

// Limits bound the memory of a book. Zero is no limit.
type Limits struct {
	// Live is the most workloads that have not ended, InQueue those of one queue.
	Live, InQueue int
}

// SetLimits sets the limits for what is submitted from now on.
func (b *Book) SetLimits(limits Limits) { b.limits = limits }

// full says why one more workload cannot be taken in now; nil when it can. It is
// not stored, so the same submission may come again.
func (b *Book) full(queue string) *workload.Reason {
	most := b.limits.InQueue
	if own := b.queues[queue].Rules.Limits.Workloads; own > 0 && (most == 0 || own < most) {
		most = own
	}
	switch {
	case most > 0 && b.liveIn[queue] >= most:
		return &workload.Reason{
			Kind: workload.ReasonFull,
			Message: fmt.Sprintf("queue %q has %d workloads that have not ended, and may have no more; submit it again later",
				queue, b.liveIn[queue]),
		}
	case b.limits.Live > 0 && b.live.Len() >= b.limits.Live:
		return &workload.Reason{
			Kind:    workload.ReasonFull,
			Message: fmt.Sprintf("there are %d workloads that have not ended, and may be no more; submit it again later", b.live.Len()),
		}
	}
	return nil
}

// exceeds says what the submission asks for that its queue does not allow; nil for
// nothing.
func (b *Book) exceeds(w *workload.Workload, class string, manifest []byte) *workload.Reason {
	rules := b.queues[w.Queue].Rules
	err := rules.Exceeded(w, class)
	if err == nil {
		err = podpolicy.CheckGrace(rules.Grace(), manifest)
	}
	if err == nil {
		return nil
	}
	return &workload.Reason{
		Kind:    workload.ReasonForbidden,
		Message: plain(strings.ReplaceAll(err.Error(), "\n", "; also: ")) + " (limits are set in queue-manager's queues file)",
	}
}
