package engine

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/state/decisionlog"
)

// The answer of an AdmissionCheck may be lost with its stream, before queue-manager has read it.
// Only the checker has it again, and it answers what it reads as open. So what is open is
// published again at the beginning of a term, every checksAgain, and when answers are known to be
// lost.
const (
	checksAgain = 5 * time.Minute
	// checksAtOnce bounds what one tick publishes again.
	checksAtOnce = 100
	// answersEvery is how often the stream of answers is looked at.
	answersEvery = 5 * time.Second
)

// checkRound is the repetition of what AdmissionChecks are asked. The zero value is due.
type checkRound struct {
	began time.Time
	rest  []string // subjects that are not repeated yet in this round
}

// next returns what is to be published again now. open lists what is open.
func (r *checkRound) next(now time.Time, open func() []string) (again []string) {
	if len(r.rest) == 0 {
		if !r.began.IsZero() && now.Sub(r.began) < checksAgain {
			return nil
		}
		r.began, r.rest = now, open()
	}
	n := min(len(r.rest), checksAtOnce)
	again, r.rest = r.rest[:n:n], r.rest[n:]
	return again
}

// repeatChecks publishes again a part of what AdmissionChecks are asked.
func (l *leader) repeatChecks() {
	if !l.decide {
		return
	}
	again := l.checks.next(l.clock.now(), func() []string { return l.state.CheckSubjects(false) })
	if len(again) > 0 {
		l.do(decisionlog.Input{Kind: decisionlog.ResendCommands, Subjects: again})
	}
}

// repeatAllChecks begins a round with everything that an answer may be about: one that was lost
// may have taken back what its check had agreed to.
func (l *leader) repeatAllChecks() {
	l.checks = checkRound{began: l.clock.now(), rest: l.state.CheckSubjects(true)}
	if len(l.checks.rest) > 0 {
		l.Logger.Warn("stream has lost answers of AdmissionChecks; asking the checks again", zap.String("stream", bus.CheckedStream), zap.Int("checks", len(l.checks.rest)))
	}
}

// answersSeen is what a term knows of the stream of answers. Each of them is there until the
// term has received it.
type answersSeen struct {
	mu       sync.Mutex
	created  time.Time
	gone     uint64 // the last sequence that the stream does not have any more
	received uint64
}

// receive notes the answers of a batch.
func (a *answersSeen) receive(sequence uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.received = max(a.received, sequence)
}

// look reports whether answers are lost since the last look: the stream was made again, or has
// lost some that the term has not received.
func (a *answersSeen) look(now bus.StreamState) (lost bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	first, again := a.created.IsZero(), !now.Created.Equal(a.created)
	if again && !first {
		a.received = 0
	}
	gone := max(now.First, 1) - 1
	lost = !first && (again || gone > max(a.gone, a.received))
	a.created, a.gone = now.Created, gone
	return lost
}

// watchAnswers looks at the stream of answers until ctx ends, and has checks asked again when
// answers are lost.
func (l *leader) watchAnswers(ctx context.Context) error {
	tick := time.NewTicker(answersEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		bounded, cancel := context.WithTimeout(ctx, answersEvery)
		now, err := l.Bus.State(bounded, bus.CheckedStream)
		cancel()
		if err == nil && l.answers.look(now) { // keepStreams reports what is wrong with the stream
			pass(ctx, l.answersLost, struct{}{})
		}
	}
}
