package engine

import (
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/state"
)

// Bounds of questions. The loop of the term looks up where a workload stands and takes a
// snapshot at most once in snapshotMaxAge. It copies at most snapshotPieceSize entries of the
// snapshot before it does other work. The search for an answer, on a state made of the
// snapshot, runs on another goroutine.
const (
	maxQuestions          = 32 // that wait for an answer, of all callers
	maxQuestionsPerCaller = 2
	snapshotMaxAge        = 5 * time.Second
	maxSnapshotWorkloads  = 10_000 // workloads that wait, in a snapshot
	snapshotPieceSize     = 1000
	explainStateTTL       = 30 * time.Second
	// explainTimeout bounds the search for changes after which the workload would start.
	// Explanations are not recorded and decide nothing, so a clock may end them.
	explainTimeout = 3 * time.Second
	// certifyTimeout bounds the searches for a certificate. Its own verification is
	// bounded in steps.
	certifyTimeout = 2 * time.Second
)

// question is a request to the loop of the term, which alone may read the state.
type question struct {
	query.ExplainRequest
	snapshot bool // whether a snapshot is wanted, too
	answer   chan<- loopAnswer
}

// loopAnswer is what the loop of the term answers to a question.
type loopAnswer struct {
	state.Handover
	snapshot *admission.Snapshot
	err      error
}

// handOver answers what is quick to answer, and starts a snapshot for the rest.
func (l *leader) handOver(q question) {
	began := time.Now()
	found, err := l.state.HandOver(q.ID, q.For, l.clock.now())
	answer := loopAnswer{Handover: found, err: err}
	if err == nil && found.Waits && q.snapshot {
		if l.snapshot == nil {
			l.snapshot = &snapshotInProgress{SnapshotBuilder: l.state.TakeSnapshot(maxSnapshotWorkloads), more: make(chan struct{})}
			close(l.snapshot.more)
		}
		l.snapshot.waiting = append(l.snapshot.waiting, func(sn *admission.Snapshot) { answer.snapshot = sn; q.answer <- answer })
	} else {
		q.answer <- answer
	}
	l.Metrics.questions.Observe(time.Since(began).Seconds())
}

// snapshotInProgress is a snapshot that is being taken for questions.
type snapshotInProgress struct {
	*admission.SnapshotBuilder
	more    chan struct{} // closed
	waiting []func(*admission.Snapshot)
}

// snapshotPieceDue is ready while a snapshot is being taken.
func (l *leader) snapshotPieceDue() <-chan struct{} {
	if l.snapshot == nil {
		return nil
	}
	return l.snapshot.more
}

// copySnapshotPiece copies the next piece of a snapshot.
func (l *leader) copySnapshotPiece() {
	began := time.Now()
	_, whole := l.snapshot.Next(snapshotPieceSize)
	l.Metrics.questions.Observe(time.Since(began).Seconds())
	if whole == nil {
		return
	}
	for _, hand := range l.snapshot.waiting {
		hand(whole)
	}
	l.snapshot = nil
}
