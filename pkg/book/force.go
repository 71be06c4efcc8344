package book

import (
	"fmt"
	"time"

	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/workload"
)

// ForceRelease ends a workload and frees what is reserved for it, although its
// objects and pods may still be there. Pods that are seen count as used beyond any
// reservation on their nodes from now on, so that their room is not given away. It
// reports whether the workload is live.
func (b *Book) ForceRelease(r *event.WorkloadRelease, now time.Time) bool {
	e := b.live.Get(r.Workload)
	if e == nil || b.kept(e) {
		return false
	}
	if !e.Holding {
		return true // it waits, and nothing is reserved for it
	}
	running := 0
	if g := b.gangs[gangKey{e.Cluster, e.ID}]; g != nil {
		for _, pod := range g.pods {
			if pod.Holds() {
				running++
			}
		}
	}
	e.Reason = &workload.Reason{Kind: workload.ReasonReleased, Message: fmt.Sprintf(
		"its places in cluster %s were freed by force by %s: %s; %d pods of it were seen then, and what is left of it is for the operator to delete",
		e.Cluster, plain(r.By), plain(r.Why), running)}
	switch {
	case e.Phase == workload.Cancelling:
		e.Phase, e.Times.Finished = workload.Cancelled, now
	case !e.Phase.Final():
		e.Phase, e.Times.Finished = workload.Failed, now
	}
	b.admission.Leave(e.ID)
	b.release(e, now) // which tells of all this
	return true
}
