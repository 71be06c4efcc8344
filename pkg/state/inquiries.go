package state

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

const (
	// releaseInquiryInterval is how often the dispatcher is asked for a workload that was to go,
	// or has ended, and still holds its places.
	releaseInquiryInterval = 30 * time.Second
	// maxQuestions bounds the questions that are asked at once, the oldest first.
	maxQuestions = 200
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
	watcher, dispatcher bool
}

// inquiries are the questions of the term to watchers and dispatchers.
type inquiries struct {
	epoch   int64
	timeout time.Duration // how long answers are waited for; zero asks nothing
	asked   map[inquirySubject]*inquiry
	count   int // of the questions of the term
}

// SetAskFor sets how long the state waits for answers before it acts on the absence of
// something; zero asks nothing. A message may be lost without a trace, so a pod that was
// not observed may exist all the same.
func (s *State) SetAskFor(most time.Duration) { s.inquiries.timeout = most }

// Questions returns the unanswered questions, the oldest first.
func (s *State) Questions(now time.Time) []Question {
	var open []*inquiry
	for _, i := range s.inquiries.asked {
		if !i.answered() && !elapsed(now, i.since, s.inquiries.timeout) {
			open = append(open, i)
		}
	}
	slices.SortFunc(open, func(x, y *inquiry) int { return cmp.Compare(x.number, y.number) })
	questions := make([]Question, 0, min(len(open), maxQuestions))
	for _, i := range open[:min(len(open), maxQuestions)] {
		questions = append(questions, i.Question)
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
// may be taken for absent: watcher and dispatcher have reported again, or have not answered
// in time. While it returns false, the next decision looks at the workload again.
func (q *inquiries) askWhetherAbsent(e *entry, now time.Time) bool {
	return q.settled(q.ask(e, now), now)
}

// askWhetherNotReady is askWhetherAbsent for a node.
func (q *inquiries) askWhetherNotReady(key admission.NodeKey, now time.Time) bool {
	return q.settled(q.askAbout(inquirySubject{cluster: key.Cluster, node: key.Name}, now), now)
}

// askDispatcher asks about a workload, and reports whether the dispatcher has reported
// again what it knows of it. Its silence proves nothing, so it is asked for as long as it
// takes. Nothing is lost by waiting: a gang that is torn down holds its places until the
// dispatcher answers.
func (q *inquiries) askDispatcher(e *entry, now time.Time) bool {
	i := q.ask(e, now)
	return i == nil || i.dispatcher
}

// askAbout returns the inquiry about a subject, and begins one when there is none or the
// answers are old. It returns nil when nothing is asked.
func (q *inquiries) askAbout(about inquirySubject, now time.Time) *inquiry {
	if q.timeout == 0 {
		return nil
	}
	if i := q.asked[about]; i != nil && !elapsed(now, i.since, 2*q.timeout) {
		return i
	}
	q.count++
	i := &inquiry{
		Question: Question{Cluster: about.cluster, Workload: about.workload, Node: about.node, Ask: fmt.Sprintf("%d/%d", q.epoch, q.count)},
		number:   q.count, since: now,
	}
	q.asked[about] = i
	return i
}

// settled reports whether an inquiry has its answers or waits for them no longer.
func (q *inquiries) settled(i *inquiry, now time.Time) bool {
	return i == nil || i.answered() || elapsed(now, i.since, q.timeout)
}

// watcherAnswers and dispatcherAnswers note an answer.
func (q *inquiries) watcherAnswers(about inquirySubject, ask string) {
	if i := q.asked[about]; i != nil && i.Ask == ask {
		i.watcher = true
	}
}

func (q *inquiries) dispatcherAnswers(e *entry, s *event.GangStatus) {
	if i := q.asked[attemptOf(e)]; i != nil && i.Ask == s.Answers {
		i.dispatcher = true
		if e.Phase == workload.Admitted {
			e.askAt = time.Time{} // it may be decided now
		}
	}
}

// drop forgets the questions whose answers are old.
func (q *inquiries) drop(now time.Time) {
	for about, i := range q.asked {
		if elapsed(now, i.since, 2*q.timeout) {
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
