package book

import (
	"fmt"

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
	switch {
	case b.limits.InQueue > 0 && b.liveIn[queue] >= b.limits.InQueue:
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
