package sim

import (
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/state"
)

const (
	// clusterSilence is after which silence of the capacity-watcher nothing starts in the cluster.
	clusterSilence = 45 * time.Second
	// heardWithin bounds the time from a report in NATS to the decision that rests on it: a
	// leader that NATS does not reach for longer gives up.
	heardWithin = busPatience + 5*time.Second
)

// readReport is a report as a term reads it, with BugDeaf as one that NATS has just stored.
func (t *term) readReport(d bus.Delivery) bus.Delivery {
	if t.w.Bug == BugDeaf {
		d.Stored = t.now()
	}
	return d
}

// checkSilence: nothing starts in a cluster that is silent. A leader whose clock is behind
// that of NATS takes an old report for a new one when its term begins.
func (c *checker) checkSilence(t *term, changes state.Changes) {
	silent := c.w.now.Sub(c.reported)
	behind := max(0, t.began.Sub(t.clock))
	paused := max(0, t.m.paused.Sub(t.began)) // what NATS holds for it meanwhile is heard late
	if silent <= clusterSilence+heardWithin+behind+paused {
		return
	}
	for _, r := range changes.Reserved {
		c.w.breach("G1", "%s was admitted to a cluster whose capacity-watcher had been silent for %s", c.w.submits.nameOf(r.Workload), silent)
	}
}
