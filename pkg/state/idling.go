package state

import (
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/spec/workload"
)

// reportedAt returns when something was reported: now when the report has no time, or a
// time of a clock that is ahead.
func reportedAt(at, now time.Time) time.Time {
	if at.IsZero() || at.After(now) {
		return now
	}
	return at
}

// updateLastUsed records the reported time of the last use of a cluster. A time in the
// future counts as the time of the report, so that one report cannot buy more time.
func (e *entry) updateLastUsed(used, reported time.Time) {
	if !used.IsZero() && e.futureUse.Equal(used) {
		return // the same report again
	}
	if used.After(reported) {
		e.futureUse, used = used, reported
	}
	e.lastUsed = used
}

// idling ends clusters that are not used.
type idling struct{ *lifecycle }

// checkIdle notes since when a running RayCluster has been idle: since it was used
// last, where an annotation has when that was; else since none of its worker groups
// has or wants a pod. A cluster without worker groups shows nothing of its use.
//
// It is not stored, and a new term continues the count: it reads the last reports of
// watcher and dispatcher with their times. Nothing has changed since the later of
// them, or there would be another report; what was before it is unknown.
func (i *idling) checkIdle(e *entry) {
	switch {
	case e.Phase != workload.Running || e.Kind != workload.KindRayCluster:
		e.idleSince = time.Time{}
	case !e.lastUsed.IsZero():
		e.idleSince = e.lastUsed
		if e.Times.Running.After(e.lastUsed) {
			e.idleSince = e.Times.Running
		}
	case !i.withoutWorkers(e):
		e.idleSince = time.Time{}
	case e.idleSince.IsZero():
		e.idleSince = latest(e.Times.Running, e.sizesAt, i.gangs[gangKey{e.Cluster, e.ID}].observedAt)
	}
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

func (i *idling) withoutWorkers(e *entry) bool {
	groups := 0
	for _, set := range e.PodSets {
		if set.Role != workload.RoleWorker {
			continue
		}
		size, known := e.sizes[set.Name]
		if !known || size > 0 {
			return false
		}
		groups++
	}
	g := i.gangs[gangKey{e.Cluster, e.ID}]
	if groups == 0 || g == nil {
		return false
	}
	return !slices.ContainsFunc(e.PodSets, func(set workload.PodSet) bool {
		holding, unbound := g.podsByNode(set.Name, e.Attempt)
		return set.Role == workload.RoleWorker && (unbound || len(holding) > 0)
	})
}

// endIdle ends a cluster that has been idle for as long as it may, once watcher and
// dispatcher have reported again.
func (i *idling) endIdle(e *entry, rules workload.Rules, now time.Time) (ended bool) {
	longest := time.Duration(rules.IdleTime)
	if !i.inquiries.askWhetherAbsent(e, now) {
		return false
	}
	message := fmt.Sprintf("no worker group has had a pod for the idleTime of %s", longest)
	if !e.lastUsed.IsZero() {
		message = fmt.Sprintf("the cluster has not been used for the idleTime of %s; its last use was at %s", longest, e.lastUsed.UTC().Format(time.RFC3339))
	}
	i.tearDownWithGrace(e, workload.Cancelling, &workload.Reason{Kind: workload.ReasonIdle, Message: message}, now)
	return true
}
