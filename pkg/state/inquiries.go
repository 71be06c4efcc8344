package state

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/spec/workload"
)

const (
	// releaseInquiryInterval is how often the dispatcher is asked for a workload that was to go,
	// or has ended, and still holds its places.
	releaseInquiryInterval = 30 * time.Second
	// maxQuestions bounds the questions to one cluster that are asked at once.
	maxQuestions = 200
	// recheckInterval is how often a workload is looked at that waits for answers.
	recheckInterval = 2 * time.Second
)

// Question asks the watcher and the dispatcher of a cluster to report again.
type Question struct {
	Cluster  string
	Workload workload.ID // or
	Node     string
	Ask      string // what the answers repeat
}

// inquirySubject is what a question is about: an attempt of a workload, or a node.
type inquirySubject struct {
	cluster  string
	workload workload.ID
	attempt  int
	node     string
}

func attemptOf(e *entry) inquirySubject {
	return inquirySubject{cluster: e.Cluster, workload: e.ID, attempt: e.Attempt}
}

// inquiry is a question that was asked, with the answers so far.
type inquiry struct {
	Question
	number              int
	since               time.Time
	watcher, dispatcher bool // whether each has answered
	// watcherSince and dispatcherSince are since when each has left the subject
	// unanswered, with the inquiries before this one.
	watcherSince, dispatcherSince time.Time
	// late is when one of them has answered that had left the subject unanswered for longer
	// than the time after which silence is named; zero for none.
	late time.Time
}

// inquiries are the questions of the term to watchers and dispatchers.
type inquiries struct {
	epoch   int64
	timeout time.Duration // after which silence is named; zero asks nothing
	asked   map[inquirySubject]*inquiry
	count   int // of the questions of the term
	heard   heard
	// pauses are the last silences of parts that have ended in this term, also those that
	// began before it.
	pauses map[Part]pause
}

// SetAnswerTimeout sets after which time silence is named in the reason of a workload. A
// question is asked again after twice that time. Zero: nothing is asked. A message may be
// lost without a trace, so a pod that was not observed may exist all the same. Silence is
// never taken for absence: the state waits for answers for as long as it takes.
func (s *State) SetAnswerTimeout(most time.Duration) { s.inquiries.timeout = most }

// Questions returns the unanswered questions, the oldest first, at most maxQuestions of each
// cluster: one that is silent keeps no other waiting.
func (s *State) Questions() []Question {
	var open []*inquiry
	for _, i := range s.inquiries.asked {
		if !i.answered() {
			open = append(open, i)
		}
	}
	slices.SortFunc(open, func(x, y *inquiry) int { return cmp.Compare(x.number, y.number) })
	of := map[string]int{}
	var questions []Question
	for _, i := range open {
		if of[i.Cluster] < maxQuestions {
			of[i.Cluster]++
			questions = append(questions, i.Question)
		}
	}
	return questions
}

// Clusters returns the clusters that have reported nodes, or where something runs.
func (s *State) Clusters() []string {
	var clusters []string
	for key := range s.nodes {
		clusters = append(clusters, key.Cluster)
	}
	for _, e := range s.startedInOrder() {
		clusters = append(clusters, e.Cluster)
	}
	slices.Sort(clusters)
	return slices.Compact(clusters)
}

// answered reports whether all that observe the subject have answered; only the watcher
// observes a node.
func (i *inquiry) answered() bool { return i.watcher && (i.dispatcher || i.Node != "") }

// ask asks watcher and dispatcher about a workload, unless a question about its attempt is
// recent.
func (q *inquiries) ask(e *entry, now time.Time) *inquiry { return q.askAbout(attemptOf(e), now) }

// askWhetherAbsent asks about a workload, and reports whether what was not observed of it
// may be taken for absent: watcher and dispatcher have reported again. While it returns
// false, the workload is looked at again from time to time, and when an answer comes.
func (q *inquiries) askWhetherAbsent(e *entry, now time.Time) bool {
	i := q.ask(e, now)
	return q.recheckUnless(e, i == nil || i.answered(), now)
}

// askWhetherNotReady asks about a node, and reports whether its watcher has reported again.
func (q *inquiries) askWhetherNotReady(key admission.NodeKey, now time.Time) bool {
	i := q.askAbout(inquirySubject{cluster: key.Cluster, node: key.Name}, now)
	return i == nil || i.answered()
}

// askDispatcher is askWhetherAbsent for what the dispatcher alone knows.
func (q *inquiries) askDispatcher(e *entry, now time.Time) bool {
	i := q.ask(e, now)
	return q.recheckUnless(e, i == nil || i.dispatcher, now)
}

// recheckUnless has a workload looked at again soon, unless what was asked is confirmed. It
// returns confirmed.
func (q *inquiries) recheckUnless(e *entry, confirmed bool, now time.Time) bool {
	e.recheckAt = time.Time{}
	if !confirmed {
		e.recheckAt = now.Add(recheckInterval)
	}
	return confirmed
}

// silent returns who has not answered about a workload, and since when; "" while there is
// still time for answers. A part that has answered within the time is not named beside one
// that has not.
func (q *inquiries) silent(e *entry, now time.Time) (who string, since time.Time) {
	i := q.asked[attemptOf(e)]
	if i == nil {
		return "", time.Time{}
	}
	watcher := !i.watcher && elapsed(now, i.watcherSince, q.timeout)
	dispatcher := !i.dispatcher && elapsed(now, i.dispatcherSince, q.timeout)
	watcherSince := q.heard.before(Part{e.Cluster, Watcher}, i.watcherSince)
	dispatcherSince := q.heard.before(Part{e.Cluster, Dispatcher}, i.dispatcherSince)
	switch {
	case watcher && dispatcher && watcherSince.After(dispatcherSince):
		return Watcher + " and " + Dispatcher, watcherSince
	case watcher && dispatcher:
		return Watcher + " and " + Dispatcher, dispatcherSince
	case watcher:
		return Watcher, watcherSince
	case dispatcher:
		return Dispatcher, dispatcherSince
	default:
		return "", time.Time{}
	}
}

// askAbout returns the inquiry about a subject, and begins one when there is none or the
// answers are old. It returns nil when nothing is asked.
func (q *inquiries) askAbout(about inquirySubject, now time.Time) *inquiry {
	if q.timeout == 0 {
		return nil
	}
	old := q.asked[about]
	if old != nil && !elapsed(now, old.since, 2*q.timeout) {
		return old
	}
	watcherSince, dispatcherSince := now, now
	if old != nil && !old.watcher {
		watcherSince = old.watcherSince
	}
	if old != nil && !old.dispatcher {
		dispatcherSince = old.dispatcherSince
	}
	q.count++
	i := &inquiry{
		Question: Question{Cluster: about.cluster, Workload: about.workload, Node: about.node, Ask: fmt.Sprintf("%d/%d", q.epoch, q.count)},
		number:   q.count, since: now, watcherSince: watcherSince, dispatcherSince: dispatcherSince,
	}
	q.asked[about] = i
	return i
}

// nodeAnswered, watcherAnswered and dispatcherAnswered note an answer.
func (q *inquiries) nodeAnswered(key admission.NodeKey, ask string) {
	if i := q.asked[inquirySubject{cluster: key.Cluster, node: key.Name}]; i != nil && i.Ask == ask {
		i.watcher = true
	}
}

func (q *inquiries) watcherAnswered(e *entry, ask string, now time.Time) {
	if i := q.asked[attemptOf(e)]; i != nil && i.Ask == ask {
		if !i.watcher && elapsed(now, i.watcherSince, q.timeout) {
			i.late = now
		}
		i.watcher, e.recheckAt = true, time.Time{}
	}
}

func (q *inquiries) dispatcherAnswered(e *entry, ask string, now time.Time) {
	if i := q.asked[attemptOf(e)]; i != nil && i.Ask == ask {
		if !i.dispatcher && elapsed(now, i.dispatcherSince, q.timeout) {
			i.late = now
		}
		i.dispatcher, e.recheckAt = true, time.Time{}
	}
}

// drop forgets the questions that were not asked again when they were old.
func (q *inquiries) drop(now time.Time) {
	for about, i := range q.asked {
		if elapsed(now, i.since, 3*q.timeout) {
			delete(q.asked, about)
		}
	}
}

// askForRelease asks from time to time whether a workload that is torn down or has ended
// still exists in its cluster.
func (q *inquiries) askForRelease(e *entry, now time.Time) {
	if !e.Holding || q.timeout == 0 || !elapsed(now, e.askAt, 0) {
		return
	}
	q.ask(e, now)
	e.askAt = now.Add(releaseInquiryInterval)
}
