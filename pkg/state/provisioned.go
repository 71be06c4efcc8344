package state

import (
	"fmt"
	"maps"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// settleProvisioned is how long a gang waits for places on nodes that are said to be there. As
// long they are kept for it.
const settleProvisioned = admission.SettleProvisioned

// observeRequest takes in what became of the request of a waiting workload.
func (l *lifecycle) observeRequest(e *entry, reported *event.GangStatus, now time.Time) {
	r := reported.Provision
	if r == nil || !hasRequest(e) || reported.Cluster != e.Provisioning.Cluster || r.Name != e.Provisioning.Name {
		return
	}
	switch r.State {
	case event.RequestPending, event.RequestAccepted:
		l.explainRequest(e, r, now)
	case event.RequestProvisioned:
		if e.Provisioning.ReadySince.IsZero() {
			l.requestProvisioned(e, r, now)
		}
	case event.RequestFailed, event.RequestExpired, event.RequestRevoked, event.RequestGone:
		l.requestFailed(e, fmt.Sprintf("%s: %s: %s", requestCalled(e.Provisioning), r.State, sanitize(r.Message)), now)
	}
}

// requestProvisioned notes that the nodes are there. Where the configuration wants it, the pods that
// they are for go to no others.
func (l *lifecycle) requestProvisioned(e *entry, r *event.ProvisionStatus, now time.Time) {
	selector := maps.Clone(r.NodeSelector)
	maps.DeleteFunc(selector, func(label, _ string) bool { _, wanted := e.Provisioning.NodeLabels[label]; return !wanted })
	var wanted []workload.PodSetUpdate
	for _, asked := range e.Provisioning.Pods {
		if len(selector) > 0 {
			wanted = append(wanted, workload.PodSetUpdate{PodSet: asked.PodSet, NodeSelector: selector})
		}
	}
	added, conflict := newUpdates(e, wanted)
	if conflict != "" {
		l.requestFailed(e, fmt.Sprintf("%s: its %s", requestCalled(e.Provisioning), conflict), now)
		return
	}
	ready := *e.Provisioning
	ready.ReadySince, ready.Updates = now.UTC(), added // as it is read from Postgres
	e.Provisioning = &ready
	l.changed.workloads[e.ID] = e
	if len(added) == 0 {
		l.admission.Provisioned(e.ID, ready.ReadySince)
		return
	}
	l.admission.Dequeue(e.ID)
	addUpdates(e, e.Provisioning.UpdatesOf)
	l.enqueueAs(e, true)
}

// requestFailed lets a workload ask in another cluster or by other flavors, else again after a
// back-off, or ends it when it has asked often enough.
func (l *lifecycle) requestFailed(e *entry, why string, now time.Time) {
	if l.tryNextCluster(e, why, now) || l.tryNextFlavor(e, why, now) {
		return
	}
	why += admission.AfterTried(e.Provisioning.TriedClusters)
	config := &quota.ProvisioningConfig{}
	if check := l.admission.QueueOf(&e.Workload).Provisioning(e.Provisioning.Flavors); check != nil {
		config = check.Config
	}
	l.withdrawRequest(e, now)
	failed := *e.Provisioning
	failed.Failures++
	e.Provisioning = &failed
	if failed.Failures > config.Limit() {
		l.admission.Dequeue(e.ID)
		l.finish(e, workload.Failed, &workload.Reason{
			Kind: workload.ReasonProvisioning, Message: fmt.Sprintf("the nodes were asked for %d times: %s", failed.Failures, why),
		}, now)
		return
	}
	e.NotBefore = now.Add(config.Backoff(failed.Failures))
	e.Reason = &workload.Reason{
		Kind:    workload.ReasonBackoff,
		Message: fmt.Sprintf("back-off: nodes are not asked for again before %s. %s", e.NotBefore.UTC().Format(time.RFC3339), why),
	}
	l.emitChanged(e, now)
	l.enqueueAs(e, true)
}

// checkShown ends the turn of a gang that shows itself as pods: when its time is over, and
// without counting that as a failure when it could not be admitted whatever nodes came.
func (l *lifecycle) checkShown(e *entry, now time.Time) {
	p := e.Provisioning
	held := l.admission.HeldReason(&e.Workload) != nil
	switch {
	case held || l.barredLong(e, now):
		l.withdrawRequest(e, now)
		l.emitChanged(e, now)
		l.enqueue(e)
	case elapsed(now, p.ShownUntil(), 0), l.tooLong(e, now):
		why := fmt.Sprintf("%s were shown in cluster %s since %s, and its nodes did not hold all pods of the gang", requestCalled(p), p.Cluster, p.Since.UTC().Format(time.RFC3339))
		if lacks := l.admission.Reason(e.ID); lacks != nil {
			why += ": " + lacks.Message
		}
		l.requestFailed(e, why, now)
	}
}

// barredLong reports whether a workload could not be admitted in the cluster of its request for
// long: a cordon of a moment ends none.
func (l *lifecycle) barredLong(e *entry, now time.Time) bool {
	since := e.Provisioning.Since
	if barred := l.admission.BarredSince(e.Provisioning.Cluster); barred.After(since) {
		since = barred
	}
	return elapsed(now, since, settleProvisioned) && l.admission.Barred(e.ID, e.Provisioning.Cluster) != ""
}

// homeIsSilent reports whether a workload asks for nodes in the cluster of its object, and that
// does not report. It could ask nowhere else, and by another number only when the cluster is back:
// the autoscaler would have it wait from the beginning.
func (l *lifecycle) homeIsSilent(e *entry) bool {
	return e.Workload.Home() == e.Provisioning.Cluster && !l.admission.Silent(e.Provisioning.Cluster).IsZero()
}

// settleAgain has the time for places on nodes that have come begin again for a workload, and for
// as long they are kept for it, when its cluster was silent meanwhile. That counts for the terms to
// come, too.
func (l *lifecycle) settleAgain(e *entry) {
	p := e.Provisioning
	since, end := p.SettlesSince(), l.inquiries.pauses[Part{p.Cluster, Watcher}].to
	if p.Placeholders() || since.IsZero() || !end.After(since) {
		return
	}
	again := *p
	again.SettlesFrom = end.UTC() // as it is read from Postgres
	e.Provisioning = &again
	l.changed.workloads[e.ID] = e
	l.admission.Provisioned(e.ID, again.SettlesFrom)
}

// checkRequests ends requests that have come to nothing: whose nodes do not hold the gang,
// those that the queue does not ask for any more, and those in clusters that have left, or that
// are cordoned or silent for long.
func (l *lifecycle) checkRequests(now time.Time) {
	for _, e := range l.askingInOrder() {
		if l.frozen(e) {
			continue
		}
		l.settleAgain(e)
		switch p := e.Provisioning; {
		case l.admission.QueueOf(&e.Workload).Provisioning(p.Flavors) == nil || l.admission.Quota().Left(p.Cluster):
			l.withdrawRequest(e, now)
			l.emitChanged(e, now)
			l.enqueue(e)
		case p.Placeholders():
			l.checkShown(e, now)
		case l.homeIsSilent(e): // there is no other cluster, and nothing can be deleted there
		case !l.admission.BarredSince(p.Cluster).IsZero() && l.barredLong(e, now),
			elapsed(now, p.SettlesSince(), settleProvisioned) && l.admission.Barred(e.ID, p.Cluster) != "": // no fault of the request
			l.withdrawRequest(e, now)
			l.emitChanged(e, now)
			l.enqueue(e)
		case elapsed(now, p.SettlesSince(), settleProvisioned):
			why := fmt.Sprintf("ProvisioningRequest %s was provisioned, and its nodes did not hold all pods for %s", p.Name, settleProvisioned)
			if lacks := l.admission.Reason(e.ID); lacks != nil {
				why += ": " + lacks.Message
			}
			l.requestFailed(e, why, now)
		case l.tooLong(e, now):
			l.requestFailed(e, fmt.Sprintf("ProvisioningRequest %s was not provisioned since %s", p.Name, p.Since.UTC().Format(time.RFC3339)), now)
		}
	}
}
