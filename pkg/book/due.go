package book

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/pkg/admission"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/workload"
)

const (
	// slowStart is how long a gang may take to start before it says what it waits
	// for, and slowRepeat how often it looks again.
	slowStart  = 10 * time.Second
	slowRepeat = 2 * time.Second
	// settle is how long a lost pod or place is waited for before anything is done
	// about it: a job that ends loses its pods, too, and the news of both may come
	// in any order.
	settle = 2 * time.Second
)

// moment is when time may change something for a workload.
type moment struct {
	at    time.Time
	order int64 // of submission, so that what falls due at once does so in order
	id    workload.ID
}

// moments is a heap of them, the earliest first. Those that do not hold any more
// stay until they come up.
type moments []moment

func (m moments) Len() int      { return len(m) }
func (m moments) Swap(i, j int) { m[i], m[j] = m[j], m[i] }
func (m moments) Less(i, j int) bool {
	return cmp.Or(m[i].at.Compare(m[j].at), cmp.Compare(m[i].order, m[j].order)) < 0
}
func (m *moments) Push(x any) { *m = append(*m, x.(moment)) }
func (m *moments) Pop() any {
	last := (*m)[len(*m)-1]
	*m = (*m)[:len(*m)-1]
	return last
}

// schedule sees to it that a workload is looked at when its time comes.
func (b *Book) schedule(e *entry) {
	if e.course == nil { // admission knows its time
		return
	}
	next := b.nextMoment(e)
	if next.IsZero() || next.Equal(e.due) {
		e.due = next
		return
	}
	e.due = next
	heap.Push(&b.due, moment{next, e.order, e.ID})
	if len(b.due) > 4*b.live.Len()+spareMoments {
		b.due = slices.DeleteFunc(b.due, func(m moment) bool { return b.holding(m) == nil })
		heap.Init(&b.due)
	}
}

// holding returns the workload whose moment it is; nil when it does not hold any
// more.
func (b *Book) holding(m moment) *entry {
	if e := b.live.Get(m.id); e != nil && e.course != nil && e.due.Equal(m.at) && !b.kept(e) {
		return e
	}
	return nil
}

// spareMoments that do not hold any more may be in the heap before it is tidied.
const spareMoments = 1000

// nextMoment returns the first moment at which age has something to do; zero for
// none.
func (b *Book) nextMoment(e *entry) time.Time {
	rules := b.rules(e)
	var first time.Time
	at := func(since time.Time, after time.Duration) {
		if since.IsZero() {
			return
		}
		if moment := since.Add(after); first.IsZero() || moment.Before(first) {
			first = moment
		}
	}
	if b.askFor > 0 && tearingDown(e) {
		at(e.askAt, 0)
	}
	switch {
	case e.Phase == workload.Evicting || e.Phase == workload.Cancelling:
		if !e.commandedAway {
			at(e.EvictAt, 0)
		}
		return first
	case e.Phase.Final():
		if !e.commandedAway {
			at(e.Times.Finished, time.Duration(rules.KeepFinished))
		}
		return first
	case e.Phase == workload.Running:
		if rules.MaxRunTime > 0 {
			at(e.Times.Running, time.Duration(rules.MaxRunTime))
		}
		if rules.IdleTime > 0 {
			at(e.idleSince, time.Duration(rules.IdleTime))
		}
		if !e.broken.noted {
			at(e.broken.since, settle)
		}
		if lossEvicts(e, rules) {
			at(e.broken.lost, settle)
		}
		at(e.broken.since, rules.HealWithin())
	default:
		at(e.Times.Dispatched, time.Duration(rules.ReadyDeadline))
		if e.slowSince.IsZero() {
			at(e.Times.Admitted, slowStart)
		} else {
			at(e.slowSince, slowRepeat)
		}
	}
	at(e.moveAt, 0)
	return first
}

// Tick lets time act: on nodes that have not been ready for the given grace, and on
// reasons that changed in amounts, which are stored now. On workloads whose moment
// has come it acts when the book decides.
func (b *Book) Tick(now time.Time, grace time.Duration) {
	b.grace = grace
	var overdue []admission.NodeKey
	for key := range b.notReady {
		n := b.nodes[key]
		if n.notReadySince.IsZero() { // known from the last term
			n.notReadySince = now
		}
		if !n.overdue && now.Sub(n.notReadySince) >= grace && b.sureOfNode(key, now) {
			n.overdue = true
			overdue = append(overdue, key)
		}
	}
	slices.SortFunc(overdue, compareKeys)
	for _, key := range overdue {
		b.losePlaces(key, now)
	}
	for _, e := range b.lazy {
		b.changed.workloads[e.ID] = e
	}
	clear(b.lazy)
	b.dropInquiries(now)
}

// ageAll looks at the workloads whose moment has come, each once; of those whose
// moment comes while the book catches up, after that.
func (b *Book) ageAll(now time.Time) {
	if b.catchingUp {
		return
	}
	var aged []*entry
	for len(b.due) > 0 && !b.due[0].at.After(now) {
		next := heap.Pop(&b.due).(moment)
		if e := b.holding(next); e != nil {
			e.due = time.Time{}
			aged = append(aged, e)
		}
	}
	for _, e := range aged {
		b.age(e, now)
		if b.live.Has(e) {
			b.schedule(e)
		}
	}
}

// over reports whether so much time has gone since a moment that was reached.
func over(now, since time.Time, after time.Duration) bool {
	return !since.IsZero() && !now.Before(since.Add(after))
}

// age does for a workload what its time has come for.
func (b *Book) age(e *entry, now time.Time) {
	switch {
	case e.Phase == workload.Evicting || e.Phase == workload.Cancelling:
		if over(now, e.EvictAt, 0) && !e.commandedAway {
			b.desire(e, event.Absent, now)
		}
		b.askForRelease(e, now)
	case e.Phase.Final():
		if over(now, e.Times.Finished, time.Duration(b.rules(e).KeepFinished)) && !e.commandedAway {
			b.desire(e, event.Ended, now)
		}
		b.askForRelease(e, now)
	default:
		b.ageStarted(e, now)
	}
}

func (b *Book) ageStarted(e *entry, now time.Time) {
	rules := b.rules(e)
	longest := time.Duration(rules.MaxRunTime)
	if e.Phase == workload.Running && longest > 0 && over(now, e.Times.Running, longest) {
		b.announce(e, workload.Cancelling, &workload.Reason{
			Kind: workload.ReasonMaxRunTime, Message: fmt.Sprintf("it has run for %s, as long as it may", longest),
		}, now)
		return
	}
	if b.endIdle(e, rules, now) {
		return
	}
	if over(now, e.moveAt, 0) {
		b.move(e, now)
	}
	if e.Phase == workload.Running && lossEvicts(e, rules) && over(now, e.broken.lost, settle) && b.retried(e) {
		e.broken.lost, e.broken.gone = time.Time{}, nil
	}
	switch {
	case tearingDown(e):
	case e.Phase == workload.Running && lossEvicts(e, rules) && over(now, e.broken.lost, settle):
		if !b.sure(e, now) { // a job that has ended loses its pods, too
			return
		}
		message := "a pod of it was lost, and it asks to be evicted then"
		if e.broken.head {
			message = "its head was lost, and what Ray knew with it"
		}
		b.evictForFault(e, &workload.Reason{Kind: workload.ReasonPodLost, Message: message}, now)
	case e.Phase == workload.Running && over(now, e.broken.since, settle):
		b.ageBroken(e, rules, now)
	case e.Phase == workload.Dispatched && over(now, e.Times.Dispatched, time.Duration(rules.ReadyDeadline)):
		if b.sure(e, now) {
			b.notReadyInTime(e, rules, now)
		}
	case e.Phase != workload.Running && over(now, e.Times.Admitted, slowStart):
		e.slowSince = now
		if e.Phase == workload.Admitted {
			b.sure(e, now) // that its object is there may have been lost
		}
		b.noteSlowStart(e, now)
	}
}

// noteSlowStart gives a gang that does not come to run a reason.
func (b *Book) noteSlowStart(e *entry, now time.Time) {
	if e.Reason != nil && !strings.HasPrefix(e.Reason.Message, slowPrefix) {
		return // KubeRay's own words say more
	}
	ready, all := b.readiness(e)
	message := fmt.Sprintf("%s %d of %d pods are ready on their nodes", slowPrefix, ready, all)
	if e.Phase == workload.Admitted {
		message = fmt.Sprintf("%s the dispatcher of cluster %s has not created its object yet", slowPrefix, e.Cluster)
	}
	b.noteTrouble(e, message, now)
}

// slowPrefix begins the reasons of noteSlowStart.
const slowPrefix = "starting:"
