package book

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/admission"
	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/workload"
)

// forgottenFor is how long the command to forget a workload stays readable.
const forgottenFor = time.Hour

// Decide does what the time has come for, admits who fits, evicts for those who may
// have others evicted, and notes why the others wait. All of that comes after the
// inputs that go into the same transaction: a place that is reserved between two
// of them, for pods that lost theirs, might be one of which the second says that
// it is taken, and Postgres would refuse the commit.
func (b *Book) Decide(now time.Time) {
	b.ageAll(now)
	if !b.admission.Pending(now) {
		return
	}
	plan := admission.Decide(b.admission, now)
	for _, g := range plan.Growths { // before somebody has it evicted
		b.grown(b.live.Get(g.Workload), g, now)
	}
	for _, v := range plan.Evictions { // of no gang that is kept
		b.evict(b.live.Get(v.Workload), &v.Reason, now)
	}
	for _, a := range plan.Admissions {
		b.admit(b.live.Get(a.Workload), a, now)
	}
	for _, w := range plan.Waits {
		if e := b.live.Get(w.Workload); e.Phase == workload.Queued {
			b.explain(e, w.Reason, now)
		} else {
			b.noteGrowth(e, w.Reason, now)
		}
	}
}

func (b *Book) admit(e *entry, a admission.Admission, now time.Time) {
	e.Phase, e.Cluster, e.Placements, e.Holding = workload.Admitted, a.Cluster, a.Placements, true
	e.Reason, e.Times.Admitted, e.Flavors = nil, now, a.Flavors
	e.EvictAt, e.NotBefore = time.Time{}, time.Time{}
	b.begin(e)
	delete(b.lazy, e.ID)
	b.charge(e, 1)
	b.changed.reserved[e.ID] = e
	b.tell(e, now)
	b.desire(e, event.Present, now)
}

// explain notes why a workload waits. A reason that differs in amounts only is
// stored with the next Tick, so that one event does not rewrite all who wait.
func (b *Book) explain(e *entry, reason workload.Reason, now time.Time) {
	old := e.Reason
	if a := b.aside[e.ID]; a != nil && reason.Kind == workload.ReasonBackoff && a.Until.After(now) {
		return // the one that is there says more
	}
	if old != nil && (old.Message == reason.Message || old.Kind == workload.ReasonBackoff && reason.Kind == workload.ReasonBackoff) {
		return // the one that is there names the cause, too
	}
	e.Reason = &reason
	if old != nil && sameCause(*old, reason) {
		b.lazy[e.ID] = e
		return
	}
	b.tell(e, now)
}

func sameCause(a, b workload.Reason) bool {
	if a.Kind != b.Kind || (a.Shortage == nil) != (b.Shortage == nil) {
		return false
	}
	if a.Quota != nil && b.Quota != nil {
		return a.Quota.Flavor == b.Quota.Flavor && a.Quota.Resource == b.Quota.Resource
	}
	return a.Shortage == nil || a.Shortage.PodSet == b.Shortage.PodSet && a.Shortage.Resource == b.Shortage.Resource
}

// desire commands the dispatcher. The manifest is added from Postgres when the
// message is written.
func (b *Book) desire(e *entry, state string, now time.Time) {
	e.commandedAway = state != event.Present
	if e.commandedAway {
		e.askAt = now.Add(releaseAsked)
	}
	command, ttl := b.desired(e, state), time.Duration(0)
	command.Order = int64(b.messages + 1) // as in the id that say gives it
	if state == event.Present && e.yield != nil {
		e.yield.id, e.yield.obeyed = b.yieldID(command.Order), false
		command.Yield = e.yield.id
	}
	if state == event.Forgotten {
		ttl = forgottenFor
	}
	b.say(now, bus.DispatchSubject(e.Cluster, e.ID), ttl, command)
}

func (b *Book) desired(e *entry, state string) *event.GangDesired {
	rules := b.rules(e)
	command := &event.GangDesired{
		Workload: e.ID, Cluster: e.Cluster, Attempt: e.Attempt, Epoch: b.epoch, State: state,
		Queue: e.Queue, Kind: e.Kind, Namespace: e.Namespace, Name: e.Name,
		ForceAfter: rules.ForceAfter, Trusted: rules.Placement == workload.Trusted,
	}
	if state != event.Forgotten {
		_, places := e.shown()
		command.Placements = b.withDomains(e, places)
	}
	if state == event.Present {
		command.PodPolicy, command.ObjectPolicy = rules.PodsOf(e.Submitter), rules.Objects
		command.Identity, _ = rules.IdentityOf(e.Submitter)
		command.Created = !e.Times.Dispatched.IsZero()
		command.EvictAt = e.EvictAt
		command.PodSets, _ = e.shown()
		for _, f := range e.Flavors {
			command.Terms = append(command.Terms, b.admission.Quota().Terms(f))
		}
	}
	return command
}

// withDomains returns places of a workload, those of pod sets with slices
// with the domains that keep these together.
func (b *Book) withDomains(e *entry, places []workload.Placement) []workload.Placement {
	levels := map[string]string{}
	for _, set := range e.PodSets {
		if set.Topology != nil && set.Topology.SliceSize > 1 {
			levels[set.Name] = set.Topology.SliceLevel
		}
	}
	if len(levels) == 0 {
		return places
	}
	places = slices.Clone(places)
	for i := range places {
		if n := b.nodes[admission.NodeKey{Cluster: e.Cluster, Name: places[i].Node}]; n != nil {
			places[i].Domain = n.Labels[levels[places[i].PodSet]]
		}
	}
	return places
}

// Commanded lists the subjects, of workloads that hold capacity, that are as
// wanted.
func (b *Book) Commanded(wanted func(subject string) bool) []string {
	var subjects []string
	for _, e := range b.startedInOrder() {
		if subject := bus.DispatchSubject(e.Cluster, e.ID); wanted(subject) {
			subjects = append(subjects, subject)
		}
	}
	for _, e := range b.removingInOrder() {
		if subject := bus.DispatchSubject(e.Cluster, e.ID); wanted(subject) {
			subjects = append(subjects, subject)
		}
	}
	return subjects
}

// RepeatCommands commands anew what shall be of the workloads that have been
// started and whose subjects are missing: for a dispatcher whose stream was lost.
func (b *Book) RepeatCommands(now time.Time, missing func(subject string) bool) {
	for _, e := range b.startedInOrder() {
		switch {
		case b.kept(e):
		case !missing(bus.DispatchSubject(e.Cluster, e.ID)):
		case e.CancelRequested, (e.Phase == workload.Evicting || e.Phase == workload.Cancelling) && over(now, e.EvictAt, 0):
			b.desire(e, event.Absent, now)
		case e.Phase.Final() && over(now, e.Times.Finished, time.Duration(b.rules(e).KeepFinished)):
			b.desire(e, event.Ended, now)
		default:
			b.desire(e, event.Present, now)
		}
	}
	for _, e := range b.removingInOrder() {
		if missing(bus.DispatchSubject(e.Cluster, e.ID)) {
			b.desireRemoved(e, now)
		}
	}
}

// Status takes in what the dispatcher knows of a workload's objects, and when it
// said so, zero being now; unless another one has replaced it.
func (b *Book) Status(s *event.GangStatus, said, now time.Time) {
	if s.Session < b.dispatchers[s.Cluster] {
		return
	}
	b.dispatchers[s.Cluster] = s.Session
	b.status(s, past(said, now), now)
}

func (b *Book) status(s *event.GangStatus, said, now time.Time) {
	s.Message = plain(s.Message)
	e := b.live.Get(s.Workload)
	if e == nil {
		b.unknownGone(s, now)
		return
	}
	b.removed(e, s, now)
	if s.Attempt != e.Attempt || s.Cluster != e.Cluster || !e.Holding || b.kept(e) {
		return
	}
	if s.Later > e.Attempt {
		b.later(e, s.Later, now)
		return
	}
	b.dispatcherAnswers(e, s)
	b.noteCreated(e, s)
	if s.Sizes != nil {
		e.sizesSaid = said
		b.sized(e, s, now)
	}
	if s.Created {
		e.noteUse(s.LastUsed, said)
	}
	switch {
	case s.Refused:
		b.fail(e, s, workload.ReasonRefused, now)
	case s.Outcome != "":
		b.jobEnded(e, s, now)
	case s.Gone && !tearingDown(e):
		b.tearDown(e, workload.Cancelling, &workload.Reason{
			Kind: workload.ReasonDeleted, Message: fmt.Sprintf("%s %s/%s was deleted, not by Muster", e.Kind, e.Namespace, e.Name),
		}, now)
	case s.Created && e.Phase == workload.Admitted:
		e.Phase, e.Times.Dispatched = workload.Dispatched, now
		b.tell(e, now)
		b.checkRunning(e, now)
	}
	switch {
	case s.Released || s.Refused:
		b.release(e, now)
	case s.Created && s.Outcome == "" && !tearingDown(e):
		b.noteTrouble(e, s.Message, now)
	}
	if b.live.Has(e) && e.Holding {
		b.yielded(e, s.Yielded, now)
		b.resize(e, now)
		b.checkIdle(e)
		b.schedule(e)
	}
}

// noteTrouble says what keeps a started workload from running, or that nothing
// does any more.
func (b *Book) noteTrouble(e *entry, message string, now time.Time) {
	switch {
	case message == "" && e.Reason != nil && e.Reason.Kind == workload.ReasonStarting:
		e.Reason = b.growthReason(e)
	case message != "" && (e.Reason == nil || e.Reason.Message != message):
		e.Reason = &workload.Reason{Kind: workload.ReasonStarting, Message: message}
	default:
		return
	}
	b.tell(e, now)
}

// messageLimit bounds what others say, in bytes.
const messageLimit = 2000

// plain makes text of others storable: a RayJob's message has the last lines of
// its log, whatever these are. Postgres stores no NUL.
func plain(text string) string {
	text = strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "?")
	if len(text) > messageLimit {
		text = strings.ToValidUTF8(text[:messageLimit], "") + " ..."
	}
	return text
}

func tearingDown(e *entry) bool {
	return e.Phase == workload.Evicting || e.Phase == workload.Cancelling || e.Phase.Final()
}

// fail ends a workload whose object Kubernetes does not take.
func (b *Book) fail(e *entry, s *event.GangStatus, kind workload.ReasonKind, now time.Time) {
	if e.Phase.Final() || e.Phase == workload.Cancelling {
		return
	}
	b.end(e, workload.Failed, &workload.Reason{Kind: kind, Message: s.Message}, now)
}

func (b *Book) jobEnded(e *entry, s *event.GangStatus, now time.Time) {
	if e.Phase.Final() || e.Phase == workload.Cancelling {
		return
	}
	phase := workload.Succeeded
	if s.Outcome == event.OutcomeFailed {
		phase = workload.Failed
		if t := e.Life.Tolerance; t != nil && t.RetryFailed {
			if e.Phase != workload.Evicting {
				b.evictForFault(e, &workload.Reason{Kind: workload.ReasonPodLost, Message: s.Message}, now)
			}
			return
		}
	}
	b.end(e, phase, &workload.Reason{Kind: workload.ReasonJobEnded, Message: s.Message}, now)
}

// end decides a workload's fate; it keeps what it holds until that is released.
func (b *Book) end(e *entry, phase workload.Phase, reason *workload.Reason, now time.Time) {
	e.Phase, e.Reason, e.Times.Finished = phase, reason, now
	if e.course != nil {
		e.askAt = now.Add(releaseAsked)
	}
	b.admission.Leave(e.ID)
	b.tell(e, now)
}

// finish ends a workload that holds nothing.
func (b *Book) finish(e *entry, phase workload.Phase, reason *workload.Reason, now time.Time) {
	b.end(e, phase, reason, now)
	b.forget(e)
}

func (b *Book) forget(e *entry) {
	if b.removing[e.ID] {
		delete(b.removing, e.ID)
		b.noteUnknown(b.removal(e))
	}
	b.live.Delete(e.ID)
	if e.course != nil {
		b.started--
	}
	b.liveIn[e.Queue]--
	b.objects.remove(e)
	delete(b.lazy, e.ID)
}
