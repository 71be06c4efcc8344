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

// subject is what a question is about: an attempt of a workload, or a node.
type subject struct {
	cluster  string
	workload workload.ID
	attempt  int
	node     string
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
	asked   map[subject]*inquiry
	count   int // of the questions of the term
}

// SetAskFor sets how long the state waits for answers before it acts on the absence of
// something; zero asks nothing. A message may be lost without a trace, so a pod that was
// not observed may exist all the same.
func (m *State) SetAskFor(most time.Duration) { m.inquiries.timeout = most }

// Questions returns the unanswered questions, the oldest first.
func (m *State) Questions(now time.Time) []Question {
	var open []*inquiry
	for _, i := range m.inquiries.asked {
		if !i.answered() && !elapsed(now, i.since, m.inquiries.timeout) {
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
func (m *State) Clusters() []string {
	var clusters []string
	for key := range m.nodes {
		clusters = append(clusters, key.Cluster)
	}
	for _, e := range m.startedInOrder() {
		clusters = append(clusters, e.Cluster)
	}
	slices.Sort(clusters)
	return slices.Compact(clusters)
}

// answered reports whether all who see the subject have answered; only the watcher sees
// a node.
func (i *inquiry) answered() bool { return i.watcher && (i.dispatcher || i.Node != "") }

// confirmedAbsent reports whether what was not observed of a workload may be taken for
// absent: watcher and dispatcher have reported again, or have not answered in time.
// Otherwise it asks them, and the next decision looks at the workload again.
func (q *inquiries) confirmedAbsent(e *entry, now time.Time) bool {
	return q.confirmed(subject{cluster: e.Cluster, workload: e.ID, attempt: e.Attempt}, now)
}

// dispatcherConfirmed reports whether the dispatcher has reported again what it knows of
// a workload. Its silence proves nothing, so it is asked for as long as it takes.
// Nothing is lost by waiting: a gang that is torn down holds its places until the
// dispatcher answers.
func (q *inquiries) dispatcherConfirmed(e *entry, now time.Time) bool {
	q.confirmedAbsent(e, now)
	i := q.asked[subject{cluster: e.Cluster, workload: e.ID, attempt: e.Attempt}]
	return q.timeout == 0 || i.dispatcher
}

// confirmedNodeState is confirmedAbsent for a node.
func (q *inquiries) confirmedNodeState(key admission.NodeKey, now time.Time) bool {
	return q.confirmed(subject{cluster: key.Cluster, node: key.Name}, now)
}

func (q *inquiries) confirmed(of subject, now time.Time) bool {
	if q.timeout == 0 {
		return true
	}
	i := q.asked[of]
	if i == nil || elapsed(now, i.since, 2*q.timeout) { // the answer is an old one
		q.count++
		q.asked[of] = &inquiry{
			Question: Question{Cluster: of.cluster, Workload: of.workload, Node: of.node, Ask: fmt.Sprintf("%d/%d", q.epoch, q.count)},
			number:   q.count, since: now,
		}
		return false
	}
	return i.answered() || elapsed(now, i.since, q.timeout)
}

// watcherAnswers and dispatcherAnswers note an answer.
func (q *inquiries) watcherAnswers(of subject, ask string) {
	if i := q.asked[of]; i != nil && i.Ask == ask {
		i.watcher = true
	}
}

func (q *inquiries) dispatcherAnswers(e *entry, s *event.GangStatus) {
	if i := q.asked[subject{cluster: e.Cluster, workload: e.ID, attempt: e.Attempt}]; i != nil && i.Ask == s.Answers {
		i.dispatcher = true
		if e.Phase == workload.Admitted {
			e.askAt = time.Time{} // it may be decided now
		}
	}
}

// drop forgets the questions whose answers are old.
func (q *inquiries) drop(now time.Time) {
	for of, i := range q.asked {
		if elapsed(now, i.since, 2*q.timeout) {
			delete(q.asked, of)
		}
	}
}

// askForRelease asks from time to time whether a workload that is torn down or has ended
// still exists in its cluster.
func (q *inquiries) askForRelease(e *entry, now time.Time) {
	if !e.Holding || q.timeout == 0 || !elapsed(now, e.askAt, 0) {
		return
	}
	q.confirmedAbsent(e, now)
	e.askAt = now.Add(releaseInquiryInterval)
}
