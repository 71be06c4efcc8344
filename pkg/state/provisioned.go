package state

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/fault"
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

// explainRequest says that nodes are asked for and how far the autoscaler is, or what keeps the
// dispatcher from creating the request, which it goes on trying.
func (l *lifecycle) explainRequest(e *entry, r *event.ProvisionStatus, now time.Time) {
	p := e.Provisioning
	why := admission.AskedReason(p.Cluster, p.Check, p.Pods, p.Placeholders(), p.TriedClusters)
	begun := why.Message + progressPrefix
	switch {
	case !r.Created && r.Message != "":
		why.Message = fmt.Sprintf("%s cannot be created: %s", requestCalled(p), sanitize(r.Message))
	case !p.Placeholders():
		why.Message += progressOf(r)
	}
	switch old := e.Reason; {
	case old != nil && (old.Kind != why.Kind || old.Message == why.Message): // a held queue says more
	case old != nil && strings.HasPrefix(old.Message, begun) && strings.HasPrefix(why.Message, begun): // an estimate may change often
		e.Reason = why
		l.staleReasons[e.ID] = e
	default:
		e.Reason = why
		l.emitChanged(e, now)
	}
}

// progressPrefix begins what a reason has of an autoscaler's progress, and progressLimit bounds
// that, in bytes.
const (
	progressPrefix = "; the autoscaler "
	progressLimit  = 300
)

// progressOf is what an autoscaler reports of a request before it is provisioned; empty for
// nothing.
func progressOf(r *event.ProvisionStatus) string {
	said := fault.ClipTo(strings.Join(strings.Fields(sanitize(r.Message)), " "), progressLimit)
	progress := ""
	switch {
	case r.State == event.RequestAccepted:
		progress = progressPrefix + "has accepted the request"
	case said != "":
		progress = progressPrefix + "has not accepted the request"
	}
	if said != "" {
		progress += ": " + said
	}
	return progress
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

// tryNextFlavor has a workload tried with its queue's other flavors when there were no nodes of
// this one, where the queue wants that and there are others. The first is asked for again after
// the back-off, also while the workload waits for another.
func (l *lifecycle) tryNextFlavor(e *entry, why string, now time.Time) bool {
	tried := append(slices.Clip(e.Provisioning.Tried), e.Provisioning.Flavors)
	if next, _ := l.admission.QueueOf(&e.Workload).TriesNextFlavor(); !next || !l.admission.HasOtherFlavors(e.ID, tried) {
		return false
	}
	l.askElsewhere(e, tried, nil, "the next flavor of its queue is tried. "+why, now)
	return true
}

// mostTriedClusters bounds the clusters in which a workload asks before it backs off.
const mostTriedClusters = 16

// tryNextCluster has a workload ask by the same flavors in the next cluster where it may run, when
// there were no nodes in this one.
func (l *lifecycle) tryNextCluster(e *entry, why string, now time.Time) bool {
	p := e.Provisioning
	tried := append(slices.Clip(p.TriedClusters), workload.TriedCluster{Cluster: p.Cluster, Flavors: p.Flavors})
	if len(tried) == mostTriedClusters || !l.admission.HasOtherCluster(e.ID, p.Flavors, tried) {
		return false
	}
	l.askElsewhere(e, p.Tried, tried, "nodes are asked for in the next cluster. "+why, now)
	return true
}

// askElsewhere ends the request of a workload and has it tried at once, but not by these flavors
// and not in these clusters.
func (l *lifecycle) askElsewhere(e *entry, flavors [][]workload.PodSetFlavors, clusters []workload.TriedCluster, message string, now time.Time) {
	l.withdrawRequest(e, now)
	failed := *e.Provisioning
	failed.Tried, failed.TriedClusters, failed.TriedSince = flavors, clusters, now.UTC() // as it is read from Postgres
	e.Provisioning = &failed
	l.asking[e.ID] = e
	e.Reason = &workload.Reason{Kind: workload.ReasonPending, Message: message}
	l.emitChanged(e, now)
	l.enqueue(e)
}

// tooLong reports whether a request is not provisioned, or a gang is shown in vain, within the time
// that the queue gives it before the next cluster or flavor is tried, if there is one.
func (l *lifecycle) tooLong(e *entry, now time.Time) bool {
	p := e.Provisioning
	_, within := l.admission.QueueOf(&e.Workload).TriesNextFlavor()
	if within == 0 || !p.ReadySince.IsZero() && !p.Placeholders() || !elapsed(now, p.Since, within) {
		return false
	}
	return l.admission.HasOtherFlavors(e.ID, append(slices.Clip(p.Tried), p.Flavors)) ||
		l.admission.HasOtherCluster(e.ID, p.Flavors, append(slices.Clip(p.TriedClusters), workload.TriedCluster{Cluster: p.Cluster, Flavors: p.Flavors}))
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

// settlesSince is since when a workload waits for its places on nodes that have come; zero for not
// yet. After a silence of the cluster that begins again.
func (l *lifecycle) settlesSince(e *entry) time.Time {
	since := e.Provisioning.ReadySince
	if end := l.inquiries.pauses[Part{e.Provisioning.Cluster, Watcher}].to; !since.IsZero() && end.After(since) {
		return end
	}
	return since
}

// checkRequests ends requests that have come to nothing: whose nodes do not hold the gang,
// those that the queue does not ask for any more, and those in clusters that have left, or that
// are cordoned or silent for long.
func (l *lifecycle) checkRequests(now time.Time) {
	for _, e := range l.askingInOrder() {
		switch p := e.Provisioning; {
		case l.frozen(e):
		case l.admission.QueueOf(&e.Workload).Provisioning(p.Flavors) == nil || l.admission.Quota().Left(p.Cluster):
			l.withdrawRequest(e, now)
			l.emitChanged(e, now)
			l.enqueue(e)
		case p.Placeholders():
			l.checkShown(e, now)
		case l.homeIsSilent(e): // there is no other cluster, and nothing can be deleted there
		case !l.admission.BarredSince(p.Cluster).IsZero() && l.barredLong(e, now),
			elapsed(now, l.settlesSince(e), settleProvisioned) && l.admission.Barred(e.ID, p.Cluster) != "": // no fault of the request
			l.withdrawRequest(e, now)
			l.emitChanged(e, now)
			l.enqueue(e)
		case elapsed(now, l.settlesSince(e), settleProvisioned):
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

// firstTried are the first flavors by which nodes were asked for in vain.
func firstTried(p *workload.Provisioning) []workload.PodSetFlavors {
	if len(p.Tried) > 0 {
		return p.Tried[0]
	}
	return p.TriedClusters[0].Flavors
}

// retryTried has workloads ask again by flavors, and in clusters, of which there were no nodes,
// after a back-off.
func (l *lifecycle) retryTried(now time.Time) {
	for _, e := range inOrder(l.asking, func(e *entry) bool { return e.Phase == workload.Queued && !hasRequest(e) }) {
		config := &quota.ProvisioningConfig{}
		if check := l.admission.QueueOf(&e.Workload).Provisioning(firstTried(e.Provisioning)); check != nil {
			config = check.Config
		}
		if l.frozen(e) || !elapsed(now, e.Provisioning.TriedSince, config.Backoff(1)) {
			continue
		}
		l.endRequest(e)
		l.enqueueAs(e, true)
	}
}
