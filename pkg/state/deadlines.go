package state

import (
	"cmp"
	"container/heap"
	"fmt"
	"strings"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// deadlines acts on the timers of workloads that have started.
type deadlines struct {
	*lifecycle
	healing *healing
	idling  *idling
}

// fire checks each workload whose timer has fired, once.
func (d *deadlines) fire(now time.Time) {
	var expired []*entry
	for len(d.timers) > 0 && !d.timers[0].at.After(now) {
		next := heap.Pop(&d.timers).(timer)
		if e := d.timerTarget(next); e != nil {
			e.deadline = time.Time{}
			expired = append(expired, e)
		}
	}
	for _, e := range expired {
		d.checkDeadlines(e, now)
		if d.live.Has(e) {
			d.setTimer(e)
		}
	}
}

// checkDeadlines acts on the deadlines of a workload that have passed.
func (d *deadlines) checkDeadlines(e *entry, now time.Time) {
	if !tearingDown(e) {
		d.checkStartedDeadlines(e, now)
		return
	}
	rules := d.rules(e)
	if d.passed(removeDeadline, e, &rules, now) {
		d.emitCommand(e, event.Absent, now)
	}
	if d.passed(forgetDeadline, e, &rules, now) {
		d.emitCommand(e, event.Ended, now)
	}
	if d.passed(askDeadline, e, &rules, now) {
		d.inquiries.askForRelease(e, now)
	}
}

func (d *deadlines) checkStartedDeadlines(e *entry, now time.Time) {
	rules := d.rules(e)
	passed := func(deadline deadline) bool { return d.passed(deadline, e, &rules, now) }
	if passed(runTimeDeadline) {
		d.tearDownWithGrace(e, workload.Cancelling, &workload.Reason{
			Kind: workload.ReasonMaxRunTime, Message: fmt.Sprintf("the workload reached its maxRunTime of %s", time.Duration(rules.MaxRunTime)),
		}, now)
		return
	}
	if passed(idleDeadline) && d.idling.endIdle(e, rules, now) {
		return
	}
	if passed(replaceDeadline) {
		d.healing.replacePlaces(e, now)
	}
	if passed(lossDeadline) && d.healing.recreatedByKubeRay(e) {
		e.disruption.lost, e.disruption.gone = time.Time{}, nil
	}
	switch {
	case tearingDown(e):
	case passed(lossDeadline):
		if !d.inquiries.askWhetherAbsent(e, now) { // a job that has ended loses its pods, too
			return
		}
		message := "a pod was lost, and onPodLoss is evict"
		if e.disruption.head {
			message = "the head pod was replaced, and Ray has lost the state of the job"
		}
		d.evictNow(e, &workload.Reason{Kind: workload.ReasonPodLost, Message: message}, now)
	case passed(giveUpDeadline):
		d.evictNow(e, d.gaveNothingUp(e, now), now)
	case passed(reportDeadline) || passed(healDeadline):
		d.healing.checkHealDeadline(e, &rules, now)
	case passed(readyDeadline) && e.Phase == workload.Admitted:
		d.notCreatedInTime(e, rules, now)
	case passed(readyDeadline):
		if !d.inquiries.askWhetherAbsent(e, now) {
			d.explainSilence(e, "the pods may be ready", now)
		} else {
			d.notReadyInTime(e, rules, now)
		}
	case e.Phase != workload.Running && elapsed(now, e.Times.Admitted, slowStart): // each other timer that fires serves, too
		e.slowSince = now
		if e.Phase == workload.Admitted {
			d.inquiries.ask(e, now) // that its object is there may have been lost
		}
		d.explainSlowStart(e, now)
	}
}

// notCreatedInTime tears a gang down whose object its dispatcher has not created before
// the ready deadline, once the dispatcher reports it. Until then the object may be there,
// and run.
func (d *deadlines) notCreatedInTime(e *entry, rules workload.Rules, now time.Time) {
	if !d.inquiries.askDispatcher(e, now) {
		d.explainSilence(e, "the object may exist", now)
	} else {
		d.notReadyInTime(e, rules, now)
	}
}

// explainSilence sets the reason of a gang whose deadline has passed, and which is not torn
// down because a part of its cluster does not answer.
func (d *deadlines) explainSilence(e *entry, what string, now time.Time) {
	if who, since := d.inquiries.silent(e, now); who != "" && !isStranded(e) {
		d.setStartingReason(e, fmt.Sprintf("%s the %s of cluster %s did not answer since %s, so %s; check that it runs and reaches NATS",
			slowPrefix, who, e.Cluster, since.UTC().Format(time.RFC3339), what), now)
	}
}

// notReadyInTime evicts a gang whose deadline has passed, unless that begins again. When
// KubeRay has made none of its pods, and gives no reason either, that does not count as the
// gang's fault.
func (d *deadlines) notReadyInTime(e *entry, rules workload.Rules, now time.Time) {
	if d.restarted(readyDeadline, e, &rules, now) {
		d.explainSlowStart(e, now)
		return
	}
	ready, all := d.readiness(e)
	deadline := time.Duration(rules.ReadyDeadline)
	since := "the creation of the object"
	if e.heardAgain.After(e.Times.Dispatched) {
		since = fmt.Sprintf("cluster %s answered again", e.Cluster)
	}
	if e.Phase == workload.Admitted {
		why := "; check that the dispatcher runs and that the API server accepts the object"
		if e.Reason != nil && e.Reason.Kind == workload.ReasonStarting && !strings.HasPrefix(e.Reason.Message, slowPrefix) {
			why = ": " + e.Reason.Message
		}
		d.evictNow(e, &workload.Reason{
			Kind:    workload.ReasonNotCreated,
			Message: fmt.Sprintf("the dispatcher of cluster %s did not create the object within the readyDeadline of %s%s", e.Cluster, deadline, why),
		}, now)
		return
	}
	message := fmt.Sprintf("%d of %d pods were ready at the readyDeadline, %s after %s", ready, all, deadline, since)
	g := d.gangs[gangKey{e.Cluster, e.ID}]
	seen := g != nil && len(g.pods) > 0
	if e.Reason != nil && e.Reason.Kind == workload.ReasonStarting && !strings.HasPrefix(e.Reason.Message, slowPrefix) {
		seen, message = true, message+": "+e.Reason.Message
	} else if why := d.waitsFor(e); why != "" {
		message += ": " + why
	}
	if !seen {
		d.evictNow(e, &workload.Reason{
			Kind:    workload.ReasonNotCreated,
			Message: fmt.Sprintf("no pod existed at the readyDeadline, %s after %s; check that the KubeRay operator runs", deadline, since),
		}, now)
		return
	}
	d.evictNow(e, &workload.Reason{Kind: workload.ReasonNotReady, Message: message}, now)
}

// explainReported sets the reason that the dispatcher gives. A report without one leaves a
// gang that starts slowly with the state's own reason: the dispatcher repeats its reports
// every few seconds, and none of them reports that the gang has begun to run.
func (d *deadlines) explainReported(e *entry, message string, now time.Time) {
	slow := e.Phase != workload.Running && elapsed(now, e.Times.Admitted, slowStart)
	if message != "" || !slow || e.Reason == nil || e.Reason.Kind != workload.ReasonStarting {
		d.setStartingReason(e, message, now)
		return
	}
	if who, _ := d.inquiries.silent(e, now); who == "" {
		d.setStartingReason(e, d.slowStartMessage(e), now)
	}
}

// explainSlowStart sets the reason of a gang that does not come to run.
func (d *deadlines) explainSlowStart(e *entry, now time.Time) {
	if e.Reason != nil && e.Reason.Kind != workload.ReasonPlaceLost && !strings.HasPrefix(e.Reason.Message, slowPrefix) {
		return // KubeRay's own words say more
	}
	d.setStartingReason(e, d.slowStartMessage(e), now)
}

// slowStartMessage returns what a gang that starts slowly lacks.
func (d *deadlines) slowStartMessage(e *entry) string {
	ready, all := d.readiness(e)
	message := fmt.Sprintf("%s %d of %d pods are ready on their nodes", slowPrefix, ready, all)
	if e.Phase == workload.Admitted {
		message = fmt.Sprintf("%s the dispatcher of cluster %s has not created the object yet", slowPrefix, e.Cluster)
	} else if why := cmp.Or(d.waitsFor(e), d.lacksPods(e)); why != "" {
		message += ": " + why
	}
	if broken := d.notReadyNodes(e); broken != "" {
		message += "; " + broken
	}
	return message
}
