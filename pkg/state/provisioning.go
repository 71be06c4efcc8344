package state

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// asking are the waiting workloads for which nodes are asked for, or were in vain by some of
// the flavors of their queue, or in some clusters.
type asking map[workload.ID]*entry

// hasRequest reports whether a waiting workload asks for nodes.
func hasRequest(e *entry) bool {
	return e.Phase == workload.Queued && e.Provisioning != nil && e.Provisioning.Open
}

// askedOf is what admission knows of the checks or the request that a waiting workload waits
// for; nil for none.
func askedOf(e *entry) *admission.Asked {
	switch {
	case e.Phase == workload.Queued && e.checks().Pending():
		return &admission.Asked{Flavors: e.checks().Flavors, NoQuota: !e.checks().Quota, Checks: checksReason(e.checks())}
	case !hasRequest(e):
		return nil
	}
	p := e.Provisioning
	return &admission.Asked{Cluster: p.Cluster, Flavors: p.Flavors, Pods: p.Pods, Since: p.Since, Ready: !p.ReadySince.IsZero(), ReadySince: p.SettlesSince(), Placeholders: p.Placeholders()}
}

// triedBy are the flavors by which no nodes are asked for a workload.
func triedBy(e *entry) [][]workload.PodSetFlavors {
	if e.Provisioning == nil {
		return nil
	}
	return e.Provisioning.Tried
}

// triedIn are the clusters in which no nodes are asked for a workload by some flavors.
func triedIn(e *entry) []workload.TriedCluster {
	if e.Provisioning == nil {
		return nil
	}
	return e.Provisioning.TriedClusters
}

// failuresOf counts the requests for nodes that have failed.
func failuresOf(e *entry) int {
	if e.Provisioning == nil {
		return 0
	}
	return e.Provisioning.Failures
}

// requestNodes has the dispatcher ask for nodes, by a number that was never used before.
func (l *lifecycle) requestNodes(e *entry, a admission.Ask, now time.Time) {
	next := workload.Provisioning{Open: true, Number: l.nextNumber(0), Cluster: a.Cluster, Check: a.Check, Flavors: a.Flavors, Pods: a.Pods, Since: now.UTC()} // as it is read from Postgres
	if last := e.Provisioning; last != nil {
		next.Number, next.Failures, next.Checks = l.nextNumber(last.Number), last.Failures, last.Checks
		next.Tried, next.TriedClusters, next.TriedSince = last.Tried, last.TriedClusters, last.TriedSince
	}
	config := l.admission.QueueOf(&e.Workload).Provisioning(a.Flavors).Config
	next.Class, next.Parameters, next.Merge, next.NodeLabels = config.Class, config.Parameters, config.MergePolicy, config.NodeLabels()
	next.Name = requestName(&e.Workload, a.Check, next.Number)
	e.Provisioning = &next
	l.asking[e.ID] = e
	l.changed.workloads[e.ID] = e
	l.emitRequest(e, event.Provision, now)
}

// maxRequestName is the length of a Kubernetes name.
const maxRequestName = 253

// requestName is the name of a ProvisioningRequest, as Kueue writes it. No label of it ends with
// a dash where it is cut.
func requestName(w *workload.Workload, check string, number int) string {
	sum := sha256.Sum256([]byte(w.ID))
	name := fmt.Sprintf("%s-%s-%s-%s-%d", strings.ToLower(w.Kind), w.Name, hex.EncodeToString(sum[:])[:5], check, number)
	if len(name) <= maxRequestName {
		return name
	}
	whole := sha256.Sum256([]byte(name))
	return fmt.Sprintf("%s-%s", strings.TrimRight(name[:maxRequestName-6], "-."), hex.EncodeToString(whole[:])[:5])
}

// emitRequest emits a command about the request for nodes of a workload that waits.
func (l *lifecycle) emitRequest(e *entry, state string, now time.Time) {
	command, ttl := l.command(e, state), time.Duration(0)
	command.Cluster, command.Order = e.Provisioning.Cluster, l.commandOrder()
	if state == event.Forgotten {
		ttl = forgottenFor
	}
	l.emit(now, event.DispatchSubject(command.Cluster, e.ID), ttl, command)
}

// withdrawRequest ends the request of a workload that waits, if it has one: the dispatcher
// deletes it.
func (l *lifecycle) withdrawRequest(e *entry, now time.Time) {
	if !hasRequest(e) {
		return
	}
	l.emitRequest(e, event.Forgotten, now)
	l.endRequest(e)
}

// endRequest notes that the request is over. Its number is not used again.
func (l *lifecycle) endRequest(e *entry) {
	delete(l.asking, e.ID)
	if e.Provisioning != nil {
		if len(e.Provisioning.Updates) > 0 {
			l.admission.Dequeue(e.ID) // its pods are changed
			dropUpdates(e, e.Provisioning.UpdatesOf)
		}
		e.Provisioning = &workload.Provisioning{Number: e.Provisioning.Number, Failures: e.Provisioning.Failures, Checks: e.Provisioning.Checks}
		l.changed.workloads[e.ID] = e
	}
}

// askingInOrder lists the waiting workloads with a request, by submission.
func (l *lifecycle) askingInOrder() []*entry { return inOrder(l.asking, hasRequest) }

// useRequest notes that the workload is admitted: with its request, or in spite of one that
// failed before.
func (l *lifecycle) useRequest(e *entry) {
	delete(l.asking, e.ID)
	if e.Provisioning != nil {
		used := *e.Provisioning
		used.Failures, used.Tried, used.TriedClusters, used.TriedSince = 0, nil, nil, time.Time{}
		e.Provisioning = &used
	}
}

// requestCalled is how reasons call a request for nodes.
func requestCalled(p *workload.Provisioning) string {
	if p.Placeholders() {
		return "placeholder pods " + p.Name
	}
	return "ProvisioningRequest " + p.Name
}
