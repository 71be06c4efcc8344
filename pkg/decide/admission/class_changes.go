package admission

import "time"

// What blockedClasses reads of a class is changed here.

// retryBy has a blocked class reopened at that time at the latest.
func (c *equivalenceClass) retryBy(at time.Time) {
	c.retryAt = earliest(c.retryAt, at)
	c.queue.blocked.refresh(c)
}

// retryOnlyBy is retryBy, whatever else was to reopen the class.
func (c *equivalenceClass) retryOnlyBy(at time.Time) {
	c.retryAt = at
	c.queue.blocked.refresh(c)
}

// tried notes that evictions were considered, and since when they are hopeless.
func (c *equivalenceClass) tried(hopelessAt int64) {
	c.triedPreemption, c.hopelessAt = true, hopelessAt
	c.queue.blocked.refresh(c)
}

// mayBeHelped notes that evictions that were considered are not hopeless.
func (c *equivalenceClass) mayBeHelped() {
	c.hopelessAt = notHopeless
	c.queue.blocked.refresh(c)
}

// exceeds notes an assignment that is not within quota.
func (c *equivalenceClass) exceeds(over overQuota) {
	c.overQuota = append(c.overQuota, over)
	c.queue.blocked.refresh(c)
}

// spares notes that something other than a head reservation keeps the class back.
func (c *equivalenceClass) spares() {
	c.sparing = true
	c.queue.blocked.refresh(c)
}

// keptBy notes the reservation that keeps the class back; nil is none.
func (c *equivalenceClass) keptBy(r *headReservation) {
	c.blockedBy = r
	c.queue.blocked.refresh(c)
}

// triedAgain forgets what the last attempt to start has found.
func (c *equivalenceClass) triedAgain() {
	c.overQuota, c.triedPreemption, c.cut = nil, false, false
	c.queue.blocked.refresh(c)
}
