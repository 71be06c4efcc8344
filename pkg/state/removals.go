package state

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// removingInOrder lists the waiting workloads of which an attempt is removed.
func (r *recovery) removingInOrder() []*entry {
	if len(r.removals.removing) == 0 {
		return nil
	}
	entries := make([]*entry, 0, len(r.removals.removing))
	for id := range r.removals.removing {
		entries = append(entries, r.live.Get(id))
	}
	slices.SortFunc(entries, func(x, y *entry) int { return cmp.Compare(x.order, y.order) })
	return entries
}

// passNumber ends the request that the ledger knows, and passes over the number of one that
// it does not know.
func (r *recovery) passNumber(e *entry, c *event.GangCommand, now time.Time) {
	r.withdrawRequest(e, now)
	if c.Provision == nil {
		return
	}
	last := workload.Provisioning{}
	if e.Provisioning != nil {
		last = *e.Provisioning
	}
	last.Number = max(last.Number, c.Provision.Number)
	e.Provisioning = &last
}

// removeAttempt removes the objects of an attempt that the ledger does not know. The
// workload waits for the attempt after it, and takes part in admission once the pods of
// the removed one are gone. Its cluster and reason say so in the ledger.
func (r *recovery) removeAttempt(e *entry, c *event.GangCommand, now time.Time) {
	if e.Phase == workload.Queued {
		r.admission.Dequeue(e.ID)
	} else {
		r.endAttempt(e)
	}
	e.Attempt, e.Cluster, e.NotBefore = c.Attempt+1, c.Cluster, time.Time{}
	e.resetSizes()
	r.removals.removing[e.ID] = true
	delete(r.staleReasons, e.ID)
	reason := restoredReason("attempt %d in cluster %q is being removed: the database was restored to an older state and does not have it", c)
	r.setPhase(e, workload.Queued, reason, now) // from any phase but a final one
	r.resendAbsent(c, 0, now)
}

// emitRemoval emits the command to remove an attempt again, because the stream has lost it.
func (r *recovery) emitRemoval(e *entry, now time.Time) {
	command := r.removal(e)
	command.Order = r.commandOrder()
	r.emit(now, event.DispatchSubject(e.Cluster, e.ID), 0, command)
}

// finishRemoval lets a workload be admitted again when the attempt is gone.
func (r *recovery) finishRemoval(e *entry, s *event.GangStatus, now time.Time) {
	if !r.removals.removing[e.ID] || r.frozen(e) || s.Cluster != e.Cluster || s.Attempt != e.Attempt-1 || !s.Released {
		return
	}
	r.endRemoval(e, now)
}

// abandonRemoval lets a workload be admitted again though no dispatcher confirms that the attempt is
// gone: its cluster has left by force. The cluster finds the command if it comes back.
func (r *recovery) abandonRemoval(e *entry, now time.Time) {
	command := r.removal(e)
	command.Order = r.commandOrder()
	r.emit(now, event.DispatchSubject(e.Cluster, e.ID), removalKept, command)
	r.endRemoval(e, now)
}

// endRemoval puts a workload back into its queue.
func (r *recovery) endRemoval(e *entry, now time.Time) {
	delete(r.removals.removing, e.ID)
	e.Cluster, e.Reason = "", nil
	r.emitChanged(e, now)
	r.enqueue(e)
}

// removeUnknown removes objects that belong to no workload of the ledger. When they are
// gone the dispatcher may forget them.
func (r *recovery) removeUnknown(c *event.GangCommand, now time.Time) {
	r.removals.trackUnknown(c)
	r.resendAbsent(c, forgottenFor, now)
}

// removeReported commands the removal of objects that only events mention, because
// their command is lost. It leaves out AppWrappers: their removal needs the manifest,
// which is lost, too. The dispatcher finds the objects of those and asks about them.
func (r *recovery) removeReported(published *workload.Record, now time.Time) {
	if e := r.live.Get(published.ID); e != nil {
		r.removeForgotten(e, published, now)
		return
	}
	if !published.Holding || published.Cluster == "" || published.Kind == workload.KindAppWrapper || r.refused(published.ID) || r.removals.unknown[gangKey{published.Cluster, published.ID}] != nil {
		return
	}
	rules := r.queues[published.Queue].Rules.For(published.Life) // the defaults when the queue is gone
	r.removeUnknown(&event.GangCommand{
		Workload: published.ID, Cluster: published.Cluster, Attempt: published.Attempt, Queue: published.Queue, Kind: published.Kind,
		Namespace: published.Namespace, Name: published.Name, Placements: published.Placements,
		ForceAfter: rules.ForceAfter, Trusted: rules.Placement == workload.Trusted,
	}, now)
}

// removeForgotten removes an attempt for which, as events say, a waiting workload held
// places. Its command may be lost, or an earlier term took it back without seeing its
// end, so objects may exist.
func (r *recovery) removeForgotten(e *entry, published *workload.Record, now time.Time) {
	if e.Phase != workload.Queued || r.removals.removing[e.ID] || !published.Holding || published.Cluster == "" || published.Attempt < e.Attempt {
		return
	}
	c := r.command(e, event.Absent)
	c.Cluster, c.Attempt, c.Placements = published.Cluster, published.Attempt, published.Placements
	r.removeAttempt(e, c, now)
}

// afterUsed lets a workload that is submitted again begin after the attempts that
// were lost with the database. It waits until objects of them are removed.
func (r *recovery) afterUsed(e *entry, now time.Time) {
	var last *event.GangCommand // of the clusters that have some, the first by name
	for key, c := range r.removals.unknown {
		if key.workload == e.ID && c.Attempt == e.Attempt-1 && (last == nil || c.Cluster < last.Cluster) {
			last = c
		}
	}
	if last != nil {
		delete(r.removals.unknown, gangKey{last.Cluster, e.ID})
		r.removeAttempt(e, last, now)
	}
}

// finishUnknownRemoval forgets objects of no workload that have been removed.
func (r *recovery) finishUnknownRemoval(s *event.GangStatus, now time.Time) {
	key := gangKey{s.Cluster, s.Workload}
	c := r.removals.unknown[key]
	if c == nil || s.Attempt != c.Attempt || !s.Released {
		return
	}
	delete(r.removals.unknown, key)
	r.resend(c, event.Forgotten, forgottenFor, now)
}

// resendAbsent commands the removal of what a command from the lost time made.
func (r *recovery) resendAbsent(c *event.GangCommand, ttl time.Duration, now time.Time) {
	r.resend(c, event.Absent, ttl, now)
}

// resend sends a command again with another state. It keeps what identifies the objects,
// including the manifest of a bundle, which the ledger may not have.
func (r *recovery) resend(c *event.GangCommand, state string, ttl time.Duration, now time.Time) {
	again := &event.GangCommand{
		Workload: c.Workload, Cluster: c.Cluster, Attempt: c.Attempt, Epoch: r.epoch, Order: r.commandOrder(), State: state,
		Queue: c.Queue, Kind: c.Kind, Namespace: c.Namespace, Name: c.Name, ForceAfter: c.ForceAfter, Trusted: c.Trusted, Provision: c.Provision,
	}
	if state != event.Forgotten {
		again.Placements = c.Placements
	}
	if again.NeedsManifest() {
		again.Manifest = c.Manifest
	}
	r.emit(now, event.DispatchSubject(c.Cluster, c.Workload), ttl, again)
}

func restoredReason(message string, c *event.GangCommand) *workload.Reason {
	return &workload.Reason{Kind: workload.ReasonRestored, Message: fmt.Sprintf(message, c.Attempt, c.Cluster)}
}
