package engine

import (
	"time"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/message/query"
	"muster.dev/muster/pkg/state"
)

// Bounds of questions. The loop of the term looks up where a workload stands and takes a
// snapshot at most once in snapshotFor. It copies at most snapshotPiece entries of the
// snapshot before it does other work. The search for an answer, on a state made of the
// snapshot, runs on another goroutine.
const (
	mostQuestions   = 32 // that wait for an answer, of all callers
	mostOfOneCaller = 2
	snapshotFor     = 5 * time.Second
	snapshotWaiting = 10_000 // workloads that wait, in a snapshot
	snapshotPiece   = 1000
	stateKept       = 30 * time.Second
	// lookFor is for how long changes are looked for. Explanations are not recorded
	// and decide nothing, so a clock may end them.
	lookFor = 3 * time.Second
)

// question is a request to the loop of the term, which alone may read the state.
type question struct {
	query.ExplainRequest
	snapshot bool // wanted, too
	answer   chan<- asked
}

// asked is the answer of the loop.
type asked struct {
	state.Handover
	snapshot *admission.Snapshot
	err      error
}

// handOver answers what is quick to answer, and starts a snapshot for the rest.
func (l *leader) handOver(q question) {
	began := time.Now()
	found, err := l.state.HandOver(q.ID, q.For)
	said := asked{Handover: found, err: err}
	if err == nil && found.Waits && q.snapshot {
		if l.taking == nil {
			l.taking = &taking{SnapshotBuilder: l.state.TakeSnapshot(snapshotWaiting), more: make(chan struct{})}
			close(l.taking.more)
		}
		l.taking.waiting = append(l.taking.waiting, func(sn *admission.Snapshot) { said.snapshot = sn; q.answer <- said })
	} else {
		q.answer <- said
	}
	l.Metrics.questions.Observe(time.Since(began).Seconds())
}

// taking is a snapshot that is being taken for questions.
type taking struct {
	*admission.SnapshotBuilder
	more    chan struct{} // closed
	waiting []func(*admission.Snapshot)
}

// piecesDue is ready while a snapshot is being taken.
func (l *leader) piecesDue() <-chan struct{} {
	if l.taking == nil {
		return nil
	}
	return l.taking.more
}

// takePiece copies the next piece of a snapshot.
func (l *leader) takePiece() {
	began := time.Now()
	_, whole := l.taking.Next(snapshotPiece)
	l.Metrics.questions.Observe(time.Since(began).Seconds())
	if whole == nil {
		return
	}
	for _, hand := range l.taking.waiting {
		hand(whole)
	}
	l.taking = nil
}
