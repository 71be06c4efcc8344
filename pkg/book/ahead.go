package book

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/workload"
)

// Ahead is what the streams have and the ledger does not know: a term finds it when
// Postgres has come back older than what was published from it.
type Ahead struct {
	// Commands are the last ones of their workloads.
	Commands []*event.GangDesired `json:"commands,omitempty"`
	// Told are the last states of workloads as events tell them.
	Told []workload.Record `json:"told,omitempty"`
	// Lost are those of them that were told to be queued and are nowhere any more.
	Lost []workload.Record `json:"lost,omitempty"`
}

// Empty reports whether there is nothing of the kind.
func (a Ahead) Empty() bool { return len(a.Commands) == 0 && len(a.Told) == 0 }

// Has reports whether the workload is live.
func (b *Book) Has(id workload.ID) bool { return b.live.Get(id) != nil }

// Ahead brings dispatchers and readers back to what the ledger says. It comes at the
// begin of a term, before the statuses are read:
//
//   - an end that was told is taken for one, because it is not to be done twice;
//   - what was admitted and is not is removed, and may be admitted again once that
//     is seen gone;
//   - of everything else it is said again how it is.
func (b *Book) Ahead(a Ahead, now time.Time) {
	for _, told := range a.Told {
		switch e := b.live.Get(told.ID); {
		case e == nil:
		case told.Phase.Final() && !told.Holding && told.Attempt >= e.Attempt:
			b.hasEnded(e, told, now)
		default:
			b.say(now, bus.EventsSubject(e.Queue, e.ID), 0, &event.WorkloadChanged{Record: e.Record})
		}
	}
	for _, lost := range a.Lost {
		b.say(now, bus.EventsSubject(lost.Queue, lost.ID), 0, &event.WorkloadRejected{Workload: lost.ID, Queue: lost.Queue, Reason: workload.Reason{
			Kind: workload.ReasonRestored, Message: "it was lost when the database came back older; submit it again",
		}})
	}
	again := map[string]bool{} // subjects
	for _, command := range a.Commands {
		if b.aheadCommand(command, now) {
			again[bus.DispatchSubject(command.Cluster, command.Workload)] = true
		}
	}
	if len(again) > 0 {
		b.RepeatCommands(now, func(subject string) bool { return again[subject] })
	}
}

// hasEnded gives a workload the end of which the ledger does not know.
func (b *Book) hasEnded(e *entry, told workload.Record, now time.Time) {
	reason := &workload.Reason{Kind: workload.ReasonRestored, Message: "it had ended when the database came back older"}
	if told.Reason != nil {
		reason = &workload.Reason{Kind: told.Reason.Kind, Message: plain(told.Reason.Message)}
	}
	if e.Phase == workload.Queued {
		b.admission.Dequeue(e.ID)
	} else {
		b.desire(e, event.Forgotten, now)
		b.giveUpPlaces(e)
	}
	b.finish(e, told.Phase, reason, now)
}

// giveUpPlaces frees what a workload holds and has no pods on.
func (b *Book) giveUpPlaces(e *entry) {
	if !e.Holding {
		return
	}
	b.charge(e, -1)
	b.admission.Leave(e.ID)
	b.admission.Release(e.ID)
	cluster := e.Cluster
	e.Placements, e.Flavors, e.Holding = nil, nil, false
	*e.course = course{due: e.due, commandedAway: e.commandedAway}
	b.changed.freed[e.ID] = true
	delete(b.changed.reserved, e.ID)
	delete(b.changed.moved, e.ID)
	b.changed.workloads[e.ID] = e
	b.countStrays(gangKey{cluster, e.ID})
}

// aheadCommand deals with a command that the ledger does not know. It reports whether
// the ledger's own is to be said again.
func (b *Book) aheadCommand(c *event.GangDesired, now time.Time) (again bool) {
	switch e := b.live.Get(c.Workload); {
	case e == nil:
		if c.State != event.Forgotten {
			b.removeUnknown(c, now)
		}
	case e.Phase == workload.Queued && c.Attempt >= e.Attempt && c.State != event.Forgotten:
		b.removeAttempt(e, c, now)
	case e.Phase == workload.Queued: // an attempt before, which is over
	case c.Attempt == e.Attempt && c.Cluster == e.Cluster:
		if c.State == event.Absent && !tearingDown(e) {
			b.tearDown(e, workload.Evicting, restored("attempt %d was being removed", c), now)
			return false
		}
		return true
	case c.Attempt <= e.Attempt || c.State == event.Forgotten: // it is over
	case !tearingDown(e) || e.Phase == workload.Evicting:
		b.giveUpPlaces(e) // no later attempt began before all pods of this one were gone
		b.removeAttempt(e, c, now)
	case c.Cluster == e.Cluster: // it ends, and with it the attempt that is there
		e.Attempt = c.Attempt
		b.desire(e, event.Absent, now)
		b.tell(e, now)
	default:
		b.removeUnknown(c, now)
	}
	return false
}

func restored(message string, c *event.GangDesired) *workload.Reason {
	return &workload.Reason{
		Kind:    workload.ReasonRestored,
		Message: fmt.Sprintf(message, c.Attempt) + fmt.Sprintf(" in cluster %q when the database came back older", c.Cluster),
	}
}

// removeAttempt has an attempt removed of which the ledger does not know. The
// workload waits, for the attempt after it, and does not take part in admission
// before that one's pods are gone. Its cluster and reason say so in the ledger.
func (b *Book) removeAttempt(e *entry, c *event.GangDesired, now time.Time) {
	if e.Phase == workload.Queued {
		b.admission.Dequeue(e.ID)
	} else {
		b.wait(e)
	}
	e.Phase, e.Attempt, e.Cluster = workload.Queued, c.Attempt+1, c.Cluster
	e.EvictAt, e.NotBefore = time.Time{}, time.Time{}
	e.Times.Admitted, e.Times.Dispatched, e.Times.Running = time.Time{}, time.Time{}, time.Time{}
	e.asSubmitted()
	e.Reason = restored("attempt %d, of which it does not know, is removed: it was there", c)
	b.removing[e.ID] = true
	delete(b.lazy, e.ID)
	b.tell(e, now)
	b.sayAbsent(c, 0, now)
}

// later deals with an attempt of which the ledger does not know, and of which not the
// streams tell but the cluster.
func (b *Book) later(e *entry, attempt int, now time.Time) {
	c := b.desired(e, event.Absent)
	c.Attempt = attempt
	b.aheadCommand(c, now)
}

// removingInOrder lists the waiting workloads of which an attempt is removed.
func (b *Book) removingInOrder() []*entry {
	if len(b.removing) == 0 {
		return nil
	}
	entries := make([]*entry, 0, len(b.removing))
	for id := range b.removing {
		entries = append(entries, b.live.Get(id))
	}
	slices.SortFunc(entries, func(x, y *entry) int { return cmp.Compare(x.order, y.order) })
	return entries
}

// desireRemoved commands once more that the attempt is removed: its command was lost.
func (b *Book) desireRemoved(e *entry, now time.Time) {
	command := b.removal(e)
	command.Order = int64(b.messages + 1)
	b.say(now, bus.DispatchSubject(e.Cluster, e.ID), 0, command)
}

func (b *Book) removal(e *entry) *event.GangDesired {
	command := b.desired(e, event.Absent)
	command.Attempt = e.Attempt - 1
	return command
}

// isRemoved reports whether a waiting workload waits for the removal of an attempt
// that the ledger did not know.
func isRemoved(e *entry) bool {
	return e.Phase == workload.Queued && e.Cluster != "" && e.Reason != nil && e.Reason.Kind == workload.ReasonRestored
}

// removed lets a workload be admitted again when the attempt is gone.
func (b *Book) removed(e *entry, s *event.GangStatus, now time.Time) {
	if !b.removing[e.ID] || s.Cluster != e.Cluster || s.Attempt != e.Attempt-1 || !s.Released {
		return
	}
	delete(b.removing, e.ID)
	e.Cluster, e.Reason = "", nil
	b.tell(e, now)
	b.enqueue(e)
}

// removeUnknown has objects removed of which the ledger has no workload. When that
// is done the dispatcher may forget them.
func (b *Book) removeUnknown(c *event.GangDesired, now time.Time) {
	b.noteUnknown(c)
	b.sayAbsent(c, forgottenFor, now)
}

func (b *Book) noteUnknown(c *event.GangDesired) {
	if b.unknown == nil {
		b.unknown = map[gangKey]*event.GangDesired{}
	}
	b.unknown[gangKey{c.Cluster, c.Workload}] = c
}

// unknownGone forgets objects of no workload that have been removed.
func (b *Book) unknownGone(s *event.GangStatus, now time.Time) {
	key := gangKey{s.Cluster, s.Workload}
	c := b.unknown[key]
	if c == nil || s.Attempt != c.Attempt || !s.Released {
		return
	}
	delete(b.unknown, key)
	b.saySame(c, event.Forgotten, forgottenFor, now)
}

// sayAbsent commands that nothing exists of what a command of a lost time made.
func (b *Book) sayAbsent(c *event.GangDesired, ttl time.Duration, now time.Time) {
	b.saySame(c, event.Absent, ttl, now)
}

// saySame gives a command once more, with another state. It keeps what finds the
// objects, the manifest of a bundle among it, which the ledger may not have.
func (b *Book) saySame(c *event.GangDesired, state string, ttl time.Duration, now time.Time) {
	again := &event.GangDesired{
		Workload: c.Workload, Cluster: c.Cluster, Attempt: c.Attempt, Epoch: b.epoch, Order: int64(b.messages + 1), State: state,
		Queue: c.Queue, Kind: c.Kind, Namespace: c.Namespace, Name: c.Name, ForceAfter: c.ForceAfter, Trusted: c.Trusted,
	}
	if state != event.Forgotten {
		again.Placements = c.Placements
	}
	if again.NeedsManifest() {
		again.Manifest = c.Manifest
	}
	b.say(now, bus.DispatchSubject(c.Cluster, c.Workload), ttl, again)
}
