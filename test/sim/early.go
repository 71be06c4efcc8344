package sim

import (
	"time"
)

// A cancellation may come before its submission: intake is away, or has other work first.

// cancelEarly cancels a gang that has not been submitted yet.
func (s *submitter) cancelEarly(f TimedFault) string {
	var of []*submission
	for _, each := range s.all {
		if each.stored < 0 && !each.announced && each.early.IsZero() && each.until == 0 {
			of = append(of, each)
		}
	}
	if len(of) == 0 || s.w.net.down(natsServer) {
		return ""
	}
	each := of[f.Pick%uint64(len(of))]
	s.cancelThen(each, func() { each.early, each.earlyLosses = s.w.now, s.w.net.losses })
	return each.name
}

const (
	// earlyFor is how long a cancellation counts that came before its submission, with a
	// margin before the hour for which queue-manager keeps it.
	earlyFor = 50 * time.Minute
	// earlyBy bounds how long after its submission it is applied, when nothing fails.
	earlyBy = time.Minute
)

// countsOn reports whether the submitter relies on the cancellation that it sent first. It
// sends another one when that may be lost or given up.
func (s *submitter) countsOn(each *submission) bool {
	return !each.early.IsZero() && each.earlyLosses == s.w.net.losses && !s.w.disk.lapse.came && s.w.now.Sub(each.early) < earlyFor && !s.w.is(classRefused)
}

// overdueEarly: who was cancelled before its submission came does not go on.
func (c *checker) overdueEarly() {
	w := c.w
	for _, each := range w.submits.all {
		r := w.disk.live[each.id]
		switch {
		case !w.submits.countsOn(each):
			each.came = time.Time{}
		case r == nil && each.final != "":
			c.made[madeCancelledEarly]++
			each.early = time.Time{}
		case r == nil || r.CancelRequested:
		case each.came.IsZero():
			each.came = w.now
		case w.now.Sub(later(each.came, w.nemesis.last)) > earlyBy:
			w.breach("G3", "%s was cancelled before its submission came, and is %s", each.name, r.Phase)
		}
	}
}
