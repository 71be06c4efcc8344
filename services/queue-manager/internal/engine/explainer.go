package engine

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"muster.dev/muster/pkg/decide/admission"
	"muster.dev/muster/pkg/decide/placement/certificate"
	"muster.dev/muster/pkg/message/query"
)

// explainer answers questions one after the other, on a state of its own.
type explainer struct {
	took   prometheus.Observer
	logger *zap.Logger
	now    func() time.Time
	// ask asks the term's goroutine.
	ask     func(ctx context.Context, r query.ExplainRequest, snapshot bool) (loopAnswer, error)
	limits  *limits
	pending chan pending

	state    *admission.State // nil while there is none
	complete bool             // the state has all who stand in line
	made     time.Time
}

// pending is a question that waits for the explainer.
type pending struct {
	ctx     context.Context
	request query.ExplainRequest
	answer  chan<- answered
}

type answered struct {
	query.ExplainAnswer
	err error
}

func newExplainer(l *leader) *explainer {
	return &explainer{
		took: l.Metrics.explained, logger: l.Logger, now: l.clock.now, limits: newLimits(), pending: make(chan pending),
		ask: func(ctx context.Context, r query.ExplainRequest, snapshot bool) (loopAnswer, error) {
			answer := make(chan loopAnswer, 1)
			pass(ctx, l.questions, question{r, snapshot, answer})
			select {
			case got := <-answer:
				return got, got.err
			case <-ctx.Done():
				return loopAnswer{}, ctx.Err()
			}
		},
	}
}

// serveQuestions answers questions that need the leader's memory, and takes changes of the
// configuration, until ctx ends.
func (l *leader) serveQuestions(ctx context.Context, group *errgroup.Group) error {
	if err := l.serveChanges(ctx, group); err != nil {
		return err
	}
	if err := l.serveDemand(ctx); err != nil {
		return err
	}
	x := newExplainer(l)
	group.Go(func() error { return x.run(ctx) })
	return query.HandleEach(ctx, l.Bus.Conn(), query.ExplainSubject, x.limits.admit, func(asking context.Context, r query.ExplainRequest) (query.ExplainAnswer, error) {
		answer := make(chan answered, 1)
		pass(asking, x.pending, pending{asking, r, answer})
		select {
		case got := <-answer:
			return got.ExplainAnswer, got.err
		case <-asking.Done():
			return query.ExplainAnswer{}, fmt.Errorf("explain workload %s: %w; too many requests at once; try again", r.ID, asking.Err())
		case <-ctx.Done():
			return query.ExplainAnswer{}, ctx.Err()
		}
	})
}

func (x *explainer) run(ctx context.Context) error {
	forget := time.NewTicker(explainStateTTL)
	defer forget.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-forget.C:
			if time.Since(x.made) > explainStateTTL {
				x.state = nil
			}
		case p := <-x.pending:
			if p.ctx.Err() != nil {
				continue // the client has gone
			}
			answer, err := x.explain(p.ctx, p.request)
			p.answer <- answered{answer, err}
		}
	}
}

// explain answers one question. A panic ends this answer only: the leader goes on.
func (x *explainer) explain(ctx context.Context, r query.ExplainRequest) (answer query.ExplainAnswer, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			x.state = nil
			x.logger.Error("cannot explain a workload", zap.String("workload", string(r.ID)), zap.Any("cause", cause), zap.ByteString("stack", debug.Stack()))
			err = fmt.Errorf("cannot explain workload %s: internal error; see the log of queue-manager", r.ID)
		}
	}()
	began := time.Now()
	defer func() { x.took.Observe(time.Since(began).Seconds()) }()
	old := x.state == nil || time.Since(x.made) > snapshotMaxAge
	found, err := x.ask(ctx, r, old)
	if err == nil && !old && found.Waits && found.Outdated(x.state) {
		found, err = x.ask(ctx, r, true)
	}
	if err != nil || !found.Waits {
		return answerTo(r, found.Known, err)
	}
	if found.snapshot != nil {
		if x.state, err = found.snapshot.State(); err != nil {
			return answer, fmt.Errorf("make a state to explain workload %s on: %w", r.ID, err)
		}
		x.complete, x.made = found.snapshot.Complete(), began
	}
	if x.state == nil { // the workload did not wait a moment ago
		return answerTo(r, found.Known, nil)
	}
	enough := func() bool { return ctx.Err() != nil || time.Since(began) > explainTimeout }
	answer, err = answerTo(r, found.Answer(x.state, x.complete, x.now(), enough), nil)
	if r.Certificate {
		answer.Certificate, answer.NoCertificate = x.certify(found)
	}
	return answer, err
}

// certify proves that the workload fits nowhere. It has a time of its own, so that a long
// search for changes leaves room for it.
func (x *explainer) certify(found loopAnswer) (*certificate.Document, string) {
	began := time.Now()
	return found.Certify(x.state, func() bool { return time.Since(began) > certifyTimeout })
}
