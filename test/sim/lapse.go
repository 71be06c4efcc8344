package sim

import (
	"maps"
	"slices"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/spec/workload"
)

// lapse is what is to be held against a ledger restored to an older state.
type lapse struct {
	pending bool // it will
	came    bool // it has
	// settles is when everything is to be as the ledger says, if nothing fails until
	// then; zero while no term has begun since.
	resumed time.Time
	// decided is the version of the last decision before that term.
	decided int64
	// forgotten are the workloads that events reported as queued and the ledger does not
	// know, each with how often NATS had lost messages when the lost time began.
	forgotten map[workload.ID]int
	losses    int
}

// backInTime notes the state of Postgres and brings it back after the lost time, at
// once or after some seconds; in one of four with the stream of kept submissions lost.
func (n *nemesis) backInTime(f TimedFault) string {
	w, l := n.w, n.w.disk
	if l.version == 0 || l.lapse.pending || l.real != nil {
		return "" // a new database is refused; real tables have no copy
	}
	before, losses := l.copied(), w.net.losses
	l.lapse.pending = true
	away := awayAfter(f)
	w.after(f.For, func() {
		lost, knew := l.version-before.version, l.records()
		l.lapse.pending = false
		l.comeBack(before)
		l.era++
		l.dropSession()
		w.net.away(postgresServer, away)
		if f.Pick&1024 != 0 && f.Pick&2048 != 0 {
			w.net.streams[bus.KeptStream] = nil
			delete(w.net.streams, bus.KeptStream)
			w.net.ensure()
		}
		n.last = later(n.last, w.now.Add(away))
		w.narrate("Postgres is as it was %s ago, at version %d, without %d commits", f.For, l.version, lost)
		w.check.forgetAttempts(w.now.Add(-f.For), losses)
		l.relapse(losses, knew)
	})
	return "by " + f.For.String()
}

// copied is the state of the tables now.
func (l *ledger) copied() *ledger {
	c := *l
	c.live, c.archive, c.nodes, c.watermarks = maps.Clone(l.live), maps.Clone(l.archive), maps.Clone(l.nodes), maps.Clone(l.watermarks)
	c.past, c.learned = maps.Clone(l.past), maps.Clone(l.learned)
	c.shapes, c.quarantine, c.holds = maps.Clone(l.shapes), maps.Clone(l.quarantine), map[workload.ID][]hold{}
	for id, holds := range l.holds {
		c.holds[id] = slices.Clone(holds)
	}
	c.history, c.outbox, c.commits = slices.Clone(l.history), slices.Clone(l.outbox), slices.Clone(l.commits)
	c.replayed = l.replayed.Clone()
	return &c
}

// comeBack makes the tables those of a copy.
func (l *ledger) comeBack(c *ledger) {
	l.epoch, l.version, l.lastOrder, l.seq = c.epoch, c.version, c.lastOrder, c.seq
	l.live, l.archive, l.nodes, l.watermarks, l.shapes, l.quarantine, l.holds = c.live, c.archive, c.nodes, c.watermarks, c.shapes, c.quarantine, c.holds
	l.history, l.outbox, l.commits, l.replayed = c.history, c.outbox, c.commits, c.replayed
	l.past, l.learned = c.past, c.learned
	l.policy, l.bounds, l.rules = c.policy, c.bounds, c.rules
	l.w.check.dirty = true
}

// records are the submissions that the tables have a record of.
func (l *ledger) records() map[workload.ID]bool {
	known := map[workload.ID]bool{}
	for _, each := range l.w.submits.all {
		if _, has := l.record(each.id); has {
			known[each.id] = true
		}
	}
	return known
}

// relapse brings the submitter, who knows only what events reported, and the checks to
// what a ledger restored to an older state knows. It knew the others until now: who was
// forgotten earlier was lost with the time that went first, and what NATS has lost since
// then stays excused.
func (l *ledger) relapse(losses int, knew map[workload.ID]bool) {
	if l.lapse.came { // what was lost then may be lost still
		for _, each := range l.w.submits.all {
			each.excuseEffects()
		}
	}
	l.lapse.came, l.lapse.resumed, l.lapse.losses = true, time.Time{}, losses
	if l.lapse.forgotten == nil {
		l.lapse.forgotten = map[workload.ID]int{}
	}
	for _, each := range l.w.submits.all {
		record, known := l.record(each.id)
		switch {
		case known && record.Phase.Final():
		case known:
			each.final = ""
		case !each.heard:
			each.begin() // a submitter that heard nothing sends it again
		case each.doubtful && !knew[each.id]: // nothing has come back of it since it was lost
		default:
			if each.final != "" && !each.ended {
				each.final = ""
			}
			if _, still := l.lapse.forgotten[each.id]; !still || knew[each.id] {
				l.lapse.forgotten[each.id] = losses
			}
		}
		if !known {
			delete(l.w.check.promised, each.id)
		}
	}
	clear(l.w.check.within)
	clear(l.w.check.large)
}

// resumed notes that a term has begun.
func (l *ledger) resumed() {
	l.w.check.relearns()
	if l.lapse.came && l.lapse.resumed.IsZero() {
		l.lapse.resumed, l.lapse.decided = l.w.now, l.replayed.Version
	}
}

// settledAfter is how long after the beginning of the next term without faults nothing may
// run that the ledger does not know, and nothing be lost that is not named.
const settledAfter = time.Minute

// settled reports whether all is to be as the ledger says.
func (l *ledger) settled() bool {
	switch p := l.lapse; {
	case !p.came:
		return true
	case p.resumed.IsZero():
		return false
	default:
		return l.w.now.Sub(later(p.resumed, l.w.nemesis.last)) > settledAfter
	}
}

// overdueLapse looks at what a ledger restored to an older state must have brought about.
func (c *checker) overdueLapse() {
	w, l := c.w, c.w.disk
	if !l.lapse.came {
		return
	}
	for _, each := range w.submits.all {
		losses, forgotten := l.lapse.forgotten[each.id]
		if !forgotten {
			continue
		}
		named, final := w.net.named(each.id)
		record, known := l.record(each.id)
		unnamed := losses != w.net.losses // what NATS has lost, too, cannot be named
		switch {
		case known:
			delete(l.lapse.forgotten, each.id)
			if !record.Phase.Final() {
				each.final = "" // it is queued again, whatever events reported
			}
		case named && final, unnamed && each.ended:
			delete(l.lapse.forgotten, each.id)
			each.final, each.doubtful = rejectedPhase, true // it had ended, and its record is lost
		case named, unnamed:
			delete(l.lapse.forgotten, each.id)
			each.begin()
		case l.settled() && l.refused[each.id] == nil:
			w.breach("G3", "%s was reported as queued, and is neither in the ledger, which was restored to an older state, nor named", each.name)
		}
	}
	c.overdueEffects()
	if l.settled() {
		c.checkAdmitted()
	}
}

// checkAdmitted: whatever runs is admitted, unless nothing can be written of it.
func (c *checker) checkAdmitted() {
	for _, p := range c.w.cluster.podsOf(func(p *pod) bool { return p.workload != "" && p.node != "" && !p.deleting }) {
		if r := c.w.disk.live[p.workload]; (r == nil || !r.Holding || r.Attempt != p.attempt) && c.w.disk.refused[p.workload] == nil {
			c.w.breach("G1", "pod %s of %s attempt %d runs unadmitted a minute after Postgres was restored to an older state", p.name, c.w.submits.nameOf(p.workload), p.attempt)
		}
	}
}
