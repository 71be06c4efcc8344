package sim

import (
	"time"

	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// What may come about.
const (
	madeNominations    = "nominations of preemptors"
	madeGrown          = "gangs that grow"
	madeShrunk         = "gangs that give places back"
	madeGivenUp        = "clusters that give up workers for another gang"
	madeBorrowed       = "admissions that borrow of a cohort"
	madePast           = "terms that begin with past usage, by queue"
	madeDecayed        = "admissions by shares that decay"
	madeHeld           = "commits while a gang waits in a held queue"
	madeEvicted        = "evicted: " // and why
	madeAway           = "away for ten minutes or more"
	madeEarly          = "pods that start before all of their gang exist"
	madeCramped        = "gangs for which a ResourceQuota has no room"
	madeAgain          = "attempts that begin again, forgotten everywhere"
	madeHolds          = "workloads that operators hold"
	madeResumed        = "workloads that operators resume"
	madeRequeued       = "attempts that operators requeue"
	madeRanked         = "workloads to which operators give another priority"
	madeMoved          = "workloads that operators move to another queue"
	madeCancelledEarly = "gangs that were cancelled before their submissions came"
	madeRepeated       = "refusals of submissions with the id of another"
	madeAsked          = "requests for nodes"
	madeProvisioned    = "requests for nodes that are provisioned"
	madeScaledDown     = "idle nodes that an autoscaler takes away"
	madeRestarts       = "restarts of NATS by an operator, after its disk was full"
	madePersistent     = "refusals that should pass by waiting, and are looked for"
	madeLearned        = "commits that store what was learned of starts and returns"
	madeLapsed         = "terms that stop acting, because their leases lapse"
	madeResumes        = "terms that act again after a lapse"
	madeReleased       = "leases that are released"
	madeElsewhere      = "commits while nodes are asked for in a cluster that lies"
	madeKept           = "admissions while places are kept for a gang that asks for nodes"
	madeTurnBetween    = "turns that end between two looks of the next gang"
	madeLate           = "messages of lost time that arrive when a term has compared the streams"
)

// count notes what a commit of a ruled seed brings about, so that a test can tell that
// what is drawn matters.
func (c *checker) count(before, after ledgerState, changes state.Changes) {
	rules := c.w.disk.rules
	for _, h := range changes.History {
		if h.Reason != nil && h.Phase == workload.Evicting {
			c.made[madeEvicted+string(h.Reason.Kind)]++
		}
		if h.Reason != nil && h.Phase == workload.Running && h.Reason.Kind == workload.ReasonShrunk {
			c.made[madeGivenUp]++
		}
	}
	for id := range after.nominations {
		if _, already := before.nominations[id]; !already {
			c.made[madeNominations]++
		}
	}
	for key, pods := range after.pods {
		switch was, there := before.pods[key]; {
		case there && pods > was:
			c.made[madeGrown]++
		case there && pods < was:
			c.made[madeShrunk]++
		}
	}
	admitted := map[workload.ID]bool{}
	for _, r := range changes.Reserved {
		admitted[r.Workload] = true
	}
	for id := range admitted {
		r := c.w.disk.live[id]
		if r == nil {
			continue
		}
		s := rules.queue(r.Queue)
		if after.used[r.Queue] > s.nominal && s.cohort != "" {
			c.made[madeBorrowed]++
		}
		if rules.fair && rules.halfLife > 0 {
			c.made[madeDecayed]++
		}
	}
	for _, s := range rules.queues {
		if s.stopped() && c.w.disk.head(s.name) != nil {
			c.made[madeHeld]++
		}
	}
}

// longAway is what counts as away for long.
const longAway = 10 * time.Minute
