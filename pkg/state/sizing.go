package state

import (
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// sizing brings the places of running gangs to the sizes of their worker groups.
type sizing struct{ *lifecycle }

// updateSizes notes the sizes of a gang's worker groups. Pods that its owner or Ray's
// autoscaler removes are no loss.
func (s *sizing) updateSizes(e *entry, status *event.GangStatus) {
	for name, size := range status.Sizes {
		size = e.limited(name, size)
		before, known := e.sizes[name]
		if !known {
			before = e.admittedPods(name)
		}
		if fewer := before - size; fewer > 0 {
			e.disruption.discount(name, fewer, max(0, s.stayingPods(e, name)-size))
		}
	}
	e.sizes, e.keeps = status.Sizes, status.Keeps
	e.limitSizes()
}

// resize brings the places of a gang to the sizes of its worker groups: it gives up
// places whose pods are gone, and requests places for pods that wait without one.
func (s *sizing) resize(e *entry, now time.Time) {
	if e.placesFixed || !e.Holding || e.sizes == nil && e.Kind != workload.KindAppWrapper || !s.live.Has(e) {
		return
	}
	s.shrink(e, now)
	s.requestGrowth(e, now)
}
