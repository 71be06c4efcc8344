package book

import (
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/workload"
)

// past returns when something was said; now when nobody told, or by a clock that
// is ahead.
func past(said, now time.Time) time.Time {
	if said.IsZero() || said.After(now) {
		return now
	}
	return said
}

// noteUse takes in when somebody says that a cluster was used last. What was still
// to come then counts as the moment it was said, so that nobody buys time with one
// word.
func (e *entry) noteUse(at, said time.Time) {
	if !at.IsZero() && e.saidUse.Equal(at) {
		return // it was said before
	}
	if at.After(said) {
		e.saidUse, at = at, said
	}
	e.lastUsed = at
}

// checkIdle notes since when a running RayCluster has been idle: since it was used
// last, where somebody says when that was; else since none of its worker groups
// has or wants a pod. A cluster without worker groups shows nothing of its use.
//
// It is not stored, and a new term need not count anew: it hears the last words of
// watcher and dispatcher, and when each was said. Since the later of them nothing
// has changed, or there would be another word; before it nobody knows.
func (b *Book) checkIdle(e *entry) {
	switch {
	case e.Phase != workload.Running || e.Kind != "RayCluster":
		e.idleSince = time.Time{}
	case !e.lastUsed.IsZero():
		e.idleSince = e.lastUsed
		if e.Times.Running.After(e.lastUsed) {
			e.idleSince = e.Times.Running
		}
	case !b.withoutWorkers(e):
		e.idleSince = time.Time{}
	case e.idleSince.IsZero():
		e.idleSince = latest(e.Times.Running, e.sizesSaid, b.gangs[gangKey{e.Cluster, e.ID}].said)
	}
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

func (b *Book) withoutWorkers(e *entry) bool {
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
	g := b.gangs[gangKey{e.Cluster, e.ID}]
	if groups == 0 || g == nil {
		return false
	}
	return !slices.ContainsFunc(e.PodSets, func(set workload.PodSet) bool {
		holding, unbound := g.of(set.Name, e.Attempt)
		return set.Role == workload.RoleWorker && (unbound || len(holding) > 0)
	})
}

// endIdle ends a cluster that has been idle for as long as it may.
func (b *Book) endIdle(e *entry, rules workload.Rules, now time.Time) (ended bool) {
	longest := time.Duration(rules.IdleTime)
	if longest == 0 || !over(now, e.idleSince, longest) || !b.sure(e, now) {
		return false
	}
	message := fmt.Sprintf("none of its worker groups has had a pod for %s, its idle time", longest)
	if !e.lastUsed.IsZero() {
		message = fmt.Sprintf("it has not been used for %s, its idle time: the last use that was noted is of %s", longest, e.lastUsed.UTC().Format(time.RFC3339))
	}
	b.announce(e, workload.Cancelling, &workload.Reason{Kind: workload.ReasonIdle, Message: message}, now)
	return true
}
