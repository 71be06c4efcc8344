package state

import (
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
)

// Where there are no nodes, a workload asks in another cluster, then by other flavors.

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
	tried, others := l.triedClusters(e)
	if others {
		l.askElsewhere(e, e.Provisioning.Tried, tried, "nodes are asked for in the next cluster. "+why, now)
	}
	return others
}

// triedClusters are the clusters in which a workload asks no more when its present request has
// failed; others says that there are more to ask in.
func (l *lifecycle) triedClusters(e *entry) (tried []workload.TriedCluster, others bool) {
	p := e.Provisioning
	tried = append(slices.Clip(p.TriedClusters), workload.TriedCluster{Cluster: p.Cluster, Flavors: p.Flavors})
	return tried, len(tried) < mostTriedClusters && l.admission.HasOtherCluster(e.ID, p.Flavors, tried)
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
	_, others := l.triedClusters(e)
	return others || l.admission.HasOtherFlavors(e.ID, append(slices.Clip(p.Tried), p.Flavors))
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
