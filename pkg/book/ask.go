package book

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/pkg/admission"
	"muster.dev/muster/pkg/event"
	"muster.dev/muster/pkg/workload"
)

const (
	// releaseAsked is how often the dispatcher is asked for a workload that was to go,
	// or has ended, and still holds its places.
	releaseAsked = 30 * time.Second
	// questionsMost bounds the questions that are asked at once, the oldest first.
	questionsMost = 200
)

// Question is what watcher and dispatcher of a cluster are to say once more.
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

// inquiry is a question that was asked, and who has answered it.
type inquiry struct {
	Question
	number              int
	since               time.Time
	watcher, dispatcher bool
}

// SetAskFor sets for how long answers are waited for before the book acts on what
// was not observed; zero asks nothing. A message may be lost without a trace: that
// nothing was heard of a pod does not mean that there is none.
func (b *Book) SetAskFor(most time.Duration) { b.askFor = most }

// Questions are those that wait for an answer, the oldest first.
func (b *Book) Questions(now time.Time) []Question {
	var open []*inquiry
	for _, i := range b.inquiries {
		if !i.answered() && !over(now, i.since, b.askFor) {
			open = append(open, i)
		}
	}
	slices.SortFunc(open, func(x, y *inquiry) int { return cmp.Compare(x.number, y.number) })
	questions := make([]Question, 0, min(len(open), questionsMost))
	for _, i := range open[:min(len(open), questionsMost)] {
		questions = append(questions, i.Question)
	}
	return questions
}

// Clusters are those of which something was ever observed, or where something runs.
func (b *Book) Clusters() []string {
	var clusters []string
	for key := range b.nodes {
		clusters = append(clusters, key.Cluster)
	}
	for _, e := range b.startedInOrder() {
		clusters = append(clusters, e.Cluster)
	}
	slices.Sort(clusters)
	return slices.Compact(clusters)
}

// answered: a node is the watcher's alone.
func (i *inquiry) answered() bool { return i.watcher && (i.dispatcher || i.Node != "") }

// sure reports whether what was not observed of a workload may be taken for absent:
// both who see it have said so again, or did not answer in time. If not they are
// asked, and the workload is looked at again with the next decision.
func (b *Book) sure(e *entry, now time.Time) bool {
	return b.sureOf(subject{cluster: e.Cluster, workload: e.ID, attempt: e.Attempt}, now)
}

// sureOfNode is sure for a node.
func (b *Book) sureOfNode(key admission.NodeKey, now time.Time) bool {
	return b.sureOf(subject{cluster: key.Cluster, node: key.Name}, now)
}

func (b *Book) sureOf(of subject, now time.Time) bool {
	if b.askFor == 0 {
		return true
	}
	i := b.inquiries[of]
	if i == nil || over(now, i.since, 2*b.askFor) { // the answer is an old one
		b.asked++
		b.inquiries[of] = &inquiry{
			Question: Question{Cluster: of.cluster, Workload: of.workload, Node: of.node, Ask: fmt.Sprintf("%d/%d", b.epoch, b.asked)},
			number:   b.asked, since: now,
		}
		return false
	}
	return i.answered() || over(now, i.since, b.askFor)
}

// watcherAnswers and dispatcherAnswers note an answer.
func (b *Book) watcherAnswers(of subject, ask string) {
	if i := b.inquiries[of]; i != nil && i.Ask == ask {
		i.watcher = true
	}
}

func (b *Book) dispatcherAnswers(e *entry, s *event.GangStatus) {
	if i := b.inquiries[subject{cluster: e.Cluster, workload: e.ID, attempt: e.Attempt}]; i != nil && i.Ask == s.Answers {
		i.dispatcher = true
	}
}

// dropInquiries forgets the questions whose answers are old.
func (b *Book) dropInquiries(now time.Time) {
	for of, i := range b.inquiries {
		if over(now, i.since, 2*b.askFor) {
			delete(b.inquiries, of)
		}
	}
}

// askForRelease asks from time to time whether a workload that was to go, or has
// ended, is still there.
func (b *Book) askForRelease(e *entry, now time.Time) {
	if !e.Holding || b.askFor == 0 || !over(now, e.askAt, 0) {
		return
	}
	b.sure(e, now)
	e.askAt = now.Add(releaseAsked)
}
