package sim

import (
	"cmp"
	"time"

	"muster.dev/muster/pkg/decide/quota"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
)

// What a policy promises, checked against the ledger as it is and nothing else.

// ledgerState is what the checks of policy compare before and after a commit.
type ledgerState struct {
	used        map[string]int64 // by queue
	leaving     map[string]int64 // of it, by gangs that are being torn down
	pods        map[attemptKey]int64
	nominations map[workload.ID]int64 // asked by those for whom gangs are being evicted
	stand       [][]hold              // places of gangs that stay
}

func gpusOf(holds []hold) (sum int64) {
	for _, h := range holds {
		sum += h.pods * h.requests[ruledResource]
	}
	return sum
}

// asked is what all pods of a workload ask for.
func asked(r workload.Record) (sum int64) {
	for i := range r.PodSets {
		sum += int64(r.PodSets[i].Count) * r.PodSets[i].Template.Requests[ruledResource]
	}
	return sum
}

// askedAtLeast is what the fewest pods ask for with which a workload may start.
func askedAtLeast(r workload.Record) (sum int64) {
	for i := range r.PodSets {
		count := r.PodSets[i].Count
		if least := r.PodSets[i].MinCount; least > 0 {
			count = min(count, least)
		}
		sum += int64(count) * r.PodSets[i].Template.Requests[ruledResource]
	}
	return sum
}

// isNominated reports whether gangs are being evicted for a workload.
func isNominated(r workload.Record) bool {
	return r.Phase == workload.Queued && r.Reason != nil && r.Reason.Kind == workload.ReasonWaitingForEviction
}

func isLeaving(r workload.Record) bool {
	return r.Holding && (r.Phase.Final() || r.Phase == workload.Evicting || r.Phase == workload.Cancelling)
}

func (l *ledger) state() ledgerState {
	s := ledgerState{used: map[string]int64{}, leaving: map[string]int64{}, pods: map[attemptKey]int64{}, nominations: map[workload.ID]int64{}}
	for id, r := range l.live {
		held := gpusOf(l.holds[id])
		s.used[r.Queue] += held
		if isLeaving(r.Record) {
			s.leaving[r.Queue] += held
		} else {
			s.stand = append(s.stand, l.holds[id])
		}
		if r.Holding {
			s.pods[attemptKey{id, r.Attempt}] = int64(r.Pods())
		}
		if isNominated(r.Record) {
			s.nominations[id] = askedAtLeast(r.Record)
		}
	}
	return s
}

// checkPolicy looks at the ledger after a commit of a ruled seed.
func (c *checker) checkPolicy(before ledgerState, changes state.Changes) {
	if !c.w.ruled() {
		return
	}
	for _, h := range changes.History {
		why := ""
		if h.Reason != nil {
			why = ": " + h.Reason.Message
		}
		c.w.narrate("%s is %s, attempt %d%s", c.w.submits.nameOf(h.Workload), h.Phase, h.Attempt, why)
	}
	after := c.w.disk.state()
	c.count(before, after, changes)
	c.checkQuota(before, after)
	c.checkStopped(before, after, changes)
	c.checkGrowth(before, after)
	c.checkNominations(before, after, changes)
	c.checkPastUsageStored(before, after, changes)
}

// checkQuota: no queue and no cohort begins to use more than it may, or more of it.
func (c *checker) checkQuota(before, after ledgerState) {
	rules := c.w.disk.rules
	was := rules.excess(before.used)
	for scope, excess := range rules.excess(after.used) {
		if excess > was[scope] {
			c.w.breach("G2", "%s uses %d more than it may, and %d before: queues use %v, before %v", scope, excess, was[scope], after.used, before.used)
		}
	}
}

// checkStopped: a queue that is held admits nothing more.
func (c *checker) checkStopped(before, after ledgerState, changes state.Changes) {
	for _, r := range changes.Reserved {
		if x := c.w.disk.live[r.Workload]; x != nil && c.w.disk.rules.queue(x.Queue).stopped() {
			c.w.breach("G2", "%s was admitted in queue %s, which is held, or has stopPolicy %q", c.w.submits.nameOf(x.ID), x.Queue, c.w.disk.rules.queue(x.Queue).stop)
		}
	}
	for key, pods := range after.pods {
		x := c.w.disk.live[key.id]
		if was, there := before.pods[key]; there && pods > was && c.w.disk.rules.queue(x.Queue).stopped() {
			c.w.breach("G2", "%s grew in queue %s, which is held", c.w.submits.nameOf(key.id), x.Queue)
		}
	}
}

// checkGrowth: who grows gets all the places of a size that it was given, or none.
func (c *checker) checkGrowth(before, after ledgerState) {
	for key, pods := range after.pods {
		if was, there := before.pods[key]; there && pods > was && !c.sizes[key][pods] {
			c.w.breach("G1", "%s grew from %d to %d pods, and was never given that size", c.w.submits.nameOf(key.id), was, pods)
		}
	}
}

// guaranteedFor bounds how long a gang waits that is within the nominal quota of its
// queue, when nothing fails: the time to evict who has borrowed it.
const guaranteedFor = 3 * time.Minute

// overduePolicy looks at what must have happened by now when nothing has failed for
// long.
func (c *checker) overduePolicy() {
	w, l := c.w, c.w.disk
	if !w.ruled() {
		return
	}
	if w.now.Sub(later(w.nemesis.last, w.start.Add(faultsFor))) < time.Minute || l.rules.revision != w.operator.wanted.revision {
		clear(c.within)
		return
	}
	state := l.state()
	within := map[workload.ID]bool{}
	for _, s := range l.rules.queues {
		head := l.head(s.name)
		if head == nil || s.takes != quota.Any || s.stopped() || head.NotBefore.After(w.now) ||
			state.used[s.name]+asked(head.Record) > s.nominal {
			continue
		}
		within[head.ID] = true
		since, known := c.within[head.ID]
		switch {
		case !known:
			c.within[head.ID] = w.now
		case w.now.Sub(since) > guaranteedFor:
			w.breach("G6", "%s is within the nominal quota of queue %s (%d of %d used) and has waited for %s: %v", w.submits.nameOf(head.ID),
				s.name, state.used[s.name], s.nominal, w.now.Sub(since), head.Reason)
		}
	}
	for id := range c.within {
		if !within[id] {
			delete(c.within, id)
		}
	}
	c.overdueSizes()
}

// head is who comes first in a queue, of those that are not held.
func (l *ledger) head(queue string) (head *row) {
	for _, r := range l.inOrder() {
		if r.Queue == queue && r.Phase == workload.Queued && r.Hold == nil && (head == nil || r.Priority > head.Priority) {
			head = r
		}
	}
	return head
}

// shrunkFor bounds how long places are held for pods that were taken away.
const shrunkFor = time.Minute

// overdueSizes: who has become smaller has given its places back.
func (c *checker) overdueSizes() {
	holds := map[attemptKey]bool{}
	for _, o := range c.w.cluster.objects {
		r := c.w.disk.live[o.workload]
		key := attemptKey{o.workload, o.attempt}
		if r == nil || r.Phase != workload.Running || r.Attempt != o.attempt || r.Pods() <= o.size() {
			continue
		}
		holds[key] = true
		if since, known := c.large[key]; !known {
			c.large[key] = c.w.now
		} else if c.w.now.Sub(since) > shrunkFor {
			c.w.breach("G5", "%s has places for %d pods and wants %d since %s", c.w.submits.nameOf(o.workload), r.Pods(), o.size(), c.w.now.Sub(since))
		}
	}
	for key := range c.large {
		if !holds[key] {
			delete(c.large, key)
		}
	}
}

// comesBefore returns who comes first in a queue: priority, then submission.
func comesBefore(a, b *row) bool {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Order, b.Order)) < 0
}
