package book

import (
	"fmt"
	"time"

	"muster.dev/muster/pkg/admission"
	"muster.dev/muster/pkg/workload"
)

// Present returns, of workloads that lack quota or places, why that is so now.
// Their records have the reason of the last look at them.
func (b *Book) Present(now time.Time, of ...workload.ID) map[workload.ID]*workload.Reason {
	return admission.Present(b.admission, now, of...)
}

// Searched counts the searches of this term.
func (b *Book) Searched() admission.Searched { return b.admission.Searched() }

// Explain says why a workload waits and what would admit it. Of one that does not
// wait it says the reason alone.
func (b *Book) Explain(id workload.ID, now time.Time) (workload.Explanation, error) {
	e := b.live.Get(id)
	if e == nil {
		return workload.Explanation{}, fmt.Errorf("workload %s is not live: it has ended, or never was", id)
	}
	if explained, waits := admission.Explain(b.admission, id, now); waits {
		if e.course != nil && e.grows != nil {
			explained.Reason = e.grows.reason(explained.Reason)
		}
		return explained, nil
	}
	explained := workload.Explanation{Workload: id, Queue: b.admission.QueueOf(&e.Workload).Name}
	if e.Reason != nil {
		explained.Reason = *e.Reason
	}
	return explained, nil
}
