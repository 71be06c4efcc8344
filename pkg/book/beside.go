package book

import (
	"fmt"
	"time"

	"muster.dev/muster/pkg/workload"
)

// countBeside counts the pods of a gang that are bound to other nodes than are
// reserved for them. Where the scheduler is trusted to place pods that is its
// choice; where they are pinned there are none, unless somebody else binds them.
func (b *Book) countBeside(key gangKey) {
	g, beside := b.gangs[key], 0
	if e := b.live.Get(key.workload); e != nil && e.Cluster == key.cluster && e.Holding {
		planned := map[slot]int{}
		for _, p := range e.Placements {
			planned[slot{p.PodSet, p.Node}] += p.Pods
		}
		for at, pods := range b.bound(e) {
			beside += max(0, pods-planned[at])
		}
	}
	b.beside.now += beside - g.beside
	b.beside.ever += max(0, beside-g.beside)
	g.beside = beside
}

// BesidePlan returns how many pods are bound to other nodes than are reserved for
// them now, and how many came to be so in this term.
func (b *Book) BesidePlan() (now, ever int) { return b.beside.now, b.beside.ever }

// noteBeside says of a running gang how many of its pods are not where they were
// planned.
func (b *Book) noteBeside(e *entry, now time.Time) {
	if e.Phase != workload.Running || e.Reason != nil && e.Reason.Kind != workload.ReasonBesidePlan {
		return // what is wrong with it matters more
	}
	beside := b.gangs[gangKey{e.Cluster, e.ID}].beside
	if beside == 0 {
		if e.Reason != nil {
			e.Reason = nil
			b.tell(e, now)
		}
		return
	}
	message := fmt.Sprintf("%d of %d pods are on other nodes than planned", beside, e.Pods())
	if b.rules(e).Placement == workload.Trusted {
		message += "; in this queue the scheduler places them"
	}
	if e.Reason == nil || e.Reason.Message != message {
		e.Reason = &workload.Reason{Kind: workload.ReasonBesidePlan, Message: message}
		b.tell(e, now)
	}
}
