package state

import (
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// deadline is something that the passing of time does to a workload that has started. The
// timer and the check of a deadline both take its time from due, so no deadline is checked
// for which no timer is set.
type deadline int

const (
	askDeadline     deadline = iota // whether it is gone is asked
	removeDeadline                  // its grace is over, and its objects are removed
	forgetDeadline                  // it has ended, and its objects are kept no longer
	runTimeDeadline                 // it has reached its maxRunTime
	idleDeadline                    // it has been idle for its idleTime
	reportDeadline                  // that it lacks pods is reported
	lossDeadline                    // the loss of a pod ends the attempt
	healDeadline                    // it has lacked pods for too long
	readyDeadline                   // it takes too long to start
	slowDeadline                    // what it waits for to start is reported, again and again
	replaceDeadline                 // its lost places are replaced
	giveUpDeadline                  // it has not given up pods that another workload needs
	deadlineCount
)

// due returns when a deadline of a workload passes; zero for never.
func (l *lifecycle) due(d deadline, e *entry, rules *workload.Rules) time.Time {
	running, ending := e.Phase == workload.Running, tearingDown(e)
	starting := !running && !ending
	switch {
	case d == askDeadline && ending && l.inquiries.timeout > 0:
		return e.askAt
	case d == removeDeadline && ending && !e.Phase.Final() && !e.removalSent:
		return e.EvictAt
	case d == forgetDeadline && e.Phase.Final() && !e.removalSent:
		return later(e.Times.Finished, time.Duration(rules.KeepFinished))
	case d == runTimeDeadline && running && rules.MaxRunTime > 0:
		return later(e.Times.Running, time.Duration(rules.MaxRunTime))
	case d == idleDeadline && running && rules.IdleTime > 0:
		return later(e.idleSince, time.Duration(rules.IdleTime))
	case d == reportDeadline && running && !e.disruption.reported:
		return later(e.disruption.since, settleTime)
	case d == lossDeadline && running && lossEvicts(e, rules):
		return later(e.disruption.lost, settleTime)
	case d == healDeadline && running:
		return later(begins(d, e), max(settleTime, rules.HealWithin()))
	case d == readyDeadline && starting:
		return later(begins(d, e), time.Duration(rules.ReadyDeadline))
	case d == slowDeadline && starting && e.slowSince.IsZero():
		return later(e.Times.Admitted, slowStart)
	case d == slowDeadline && starting:
		return later(e.slowSince, slowRepeat)
	case d == replaceDeadline && !ending:
		return e.replaceAt
	case d == giveUpDeadline && !ending && e.giveUp != nil:
		return later(e.giveUpSince, giveUpMost)
	}
	return time.Time{}
}

// begins returns when the time to heal or to be ready begins.
func begins(d deadline, e *entry) time.Time {
	if d == healDeadline {
		return notBefore(e.disruption.since, e.heardAgain)
	}
	return notBefore(startedAt(e), e.heardAgain)
}

// later adds a duration to a time; to one that is not set it adds nothing.
func later(since time.Time, by time.Duration) time.Time {
	if since.IsZero() {
		return since
	}
	return since.Add(by)
}

// notBefore returns the later of two times, and zero for one that is not set.
func notBefore(since, least time.Time) time.Time {
	if since.IsZero() || since.After(least) {
		return since
	}
	return least
}

// passed reports whether a deadline of a workload has passed.
func (l *lifecycle) passed(d deadline, e *entry, rules *workload.Rules, now time.Time) bool {
	return elapsed(now, l.due(d, e, rules), 0)
}

// nextDeadline returns the earliest deadline of a workload; zero for none.
func (l *lifecycle) nextDeadline(e *entry) time.Time {
	rules := l.rules(e)
	var first time.Time
	for d := range deadlineCount {
		if at := l.due(d, e, &rules); !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	if !tearingDown(e) && !first.IsZero() && first.Before(e.recheckAt) {
		return e.recheckAt
	}
	return first
}

// startedAt is when the ready deadline of a starting gang begins: at the creation of its
// object or, while that is not known, at its admission. What the API server refuses to
// create for ever thus keeps no places.
func startedAt(e *entry) time.Time {
	if e.Times.Dispatched.IsZero() {
		return e.Times.Admitted
	}
	return e.Times.Dispatched
}

// lossEvicts reports whether the loss of a pod means the end of the attempt:
// because the workload asks for it, or because a job has lost its head pod, with
// which Ray forgets the job, so that KubeRay would wait for it for ever.
func lossEvicts(e *entry, rules *workload.Rules) bool {
	return rules.OnPodLoss == workload.EvictOnLoss || e.disruption.head && e.Kind == workload.KindRayJob
}

// elapsed reports whether the given time has passed since a time that is set.
func elapsed(now, since time.Time, after time.Duration) bool {
	return !since.IsZero() && !now.Before(since.Add(after))
}
