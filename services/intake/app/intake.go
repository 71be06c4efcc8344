package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/manifest/ray"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/pkg/service/throttle"
	"muster.dev/muster/pkg/service/tracing"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/intake/internal/budget"
	"muster.dev/muster/services/intake/internal/submission"
)

// newResults registers the counter of submissions by result. All results begin with zero, so
// that Prometheus sees the first increase of each.
func newResults(registry *prometheus.Registry) *prometheus.CounterVec {
	results := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "muster_intake_submissions_total", Help: "Submissions read, by result.",
	}, []string{"result"})
	registry.MustRegister(results)
	for _, result := range []string{"accepted", "rejected", "retried", "given up", "dropped"} {
		results.WithLabelValues(result)
	}
	return results
}

// intake reads messages from the submit subjects: the messages of one subject one
// after the other, those of different subjects concurrently.
type intake struct {
	bus       *bus.Bus
	tracer    tracing.Tracer
	logger    *zap.Logger
	results   *prometheus.CounterVec
	budget    *budget.Budget
	suspects  *suspects
	answers   *throttle.Throttle // of rejections of dropped submissions
	operator  ray.Operator
	published chan underway
	// read is submission.Read for the operator.
	read func(submission.Message) (submission.Result, error)
}

func newIntake(operator ray.Operator, b *bus.Bus, spending *budget.Budget, runtime *service.Runtime) *intake {
	return &intake{
		bus: b, tracer: runtime.Tracer, logger: runtime.Logger, results: newResults(runtime.Metrics), budget: spending,
		suspects: newSuspects(), answers: throttle.New(droppedEvery, 1), operator: operator, published: make(chan underway, underWay),
		read: func(m submission.Message) (submission.Result, error) { return submission.Read(operator, m) },
	}
}

// run reads submissions until ctx ends, and calls ready once it reads.
func (in *intake) run(ctx context.Context, ready func()) error {
	var read func()
	err := service.Patiently(ctx, in.logger, "read submissions", anyError, func() (err error) {
		read, err = in.bus.Handle(ctx, bus.Work{Stream: bus.SubmitStream, Durable: bus.IntakeDurable, Dropped: in.dropped}, in.handle)
		return err
	})
	if err != nil {
		return err
	}
	ready()
	waiting, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	context.AfterFunc(ctx, func() { time.AfterFunc(stopTimeout, cancel) })
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		in.settle(waiting)
	}()
	read()
	close(in.published)
	<-settled
	return nil
}

// underway is a message whose results are published but not yet stored.
type underway struct {
	delivery bus.Delivery
	outcomes []outcome
}

// outcome is the published result of one submission.
type outcome struct {
	result submission.Result
	stored bus.Published
	span   tracing.Span
}

// handle reads a message within its budget and publishes the results without waiting
// for the server. The results of a subject are stored in the order of its submissions.
func (in *intake) handle(ctx context.Context, d bus.Delivery) {
	message := messageOf(d)
	if in.suspects.is(d) {
		survives, err := in.survives(ctx, d, message)
		switch {
		case err != nil:
			d.Retry(0) // intake stops
			return
		case !survives:
			in.deadLetterUnread(ctx, d, message)
			return
		}
	}
	read, err := budget.Do(ctx, in.budget, len(d.Data), d.Working, func() []readOne { return in.readAll(message) })
	switch {
	case errors.Is(err, budget.ErrSpent):
		in.deadLetter(ctx, d, message, err)
		return
	case err != nil:
		d.Retry(0) // intake stops
		return
	}
	in.suspects.clear(d)
	u := underway{delivery: d}
	for _, one := range read {
		s, err := in.publish(one)
		if err != nil {
			for _, before := range u.outcomes {
				before.span.End(err)
			}
			in.redeliver(ctx, d, message, err)
			return
		}
		u.outcomes = append(u.outcomes, s)
	}
	in.published <- u
}

func messageOf(d bus.Delivery) submission.Message {
	submitter := workload.ByNATS
	if _, user := event.SubmittedBy(d.Subject); user != "" {
		submitter += "/" + user
	}
	return submission.Message{Subject: d.Subject, Submitter: submitter, Headers: d.Headers, Data: d.Data, Sequence: d.Sequence, Stored: d.Stored}
}

// readOne is one submission of a message after reading.
type readOne struct {
	message submission.Message
	result  submission.Result
	err     error
}

func (in *intake) readAll(message submission.Message) (read []readOne) {
	for _, one := range submission.Split(message) {
		result, err := in.read(one)
		read = append(read, readOne{one, result, err})
	}
	return read
}

// publish publishes the result of a submission.
func (in *intake) publish(one readOne) (outcome, error) {
	result, err := one.result, one.err
	if err != nil {
		return outcome{}, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	span := in.tracer.Begin(result.Workload, result.Traceparent, "submission read", "muster.queue", result.Queue)
	result.Event.Traceparent = span.Traceparent()
	stored, err := in.bus.PublishAsync(result.Subject, result.Event)
	if errors.Is(err, bus.ErrTooLarge) {
		if result, err = submission.Reject(one.message, err); err == nil {
			stored, err = in.bus.PublishAsync(result.Subject, result.Event)
		}
	}
	if err != nil {
		span.End(err)
	}
	return outcome{result, stored, span}, err
}

// errUnreadable is wrapped when Muster itself fails to process a submission.
var errUnreadable = errors.New("process the submission")

// settle acknowledges messages whose results are stored. When waiting ends it returns
// the others for redelivery.
func (in *intake) settle(waiting context.Context) {
	for u := range in.published {
		ctx, cancel := context.WithTimeout(waiting, storeTimeout)
		var failed error
		for _, s := range u.outcomes {
			err := s.stored.Wait(ctx)
			s.span.End(err)
			failed = errors.Join(failed, err)
		}
		cancel()
		if failed != nil {
			in.retry(u.delivery, failed)
			continue
		}
		u.delivery.Ack()
		in.suspects.forget(u.delivery)
		for _, s := range u.outcomes {
			in.count(s.result, u.delivery.Subject)
		}
	}
}

// count counts and logs the result of a submission.
func (in *intake) count(result submission.Result, subject string) {
	if result.Rejection != nil {
		in.results.WithLabelValues("rejected").Inc()
		in.logger.Debug("submission rejected", zap.String("workload", string(result.Workload)),
			zap.String("subject", subject), zap.String("reason", result.Rejection.Message))
		return
	}
	in.results.WithLabelValues("accepted").Inc()
	in.logger.Debug("submission accepted", zap.String("workload", string(result.Workload)), zap.String("subject", subject))
}

func (in *intake) retry(d bus.Delivery, cause error) {
	in.results.WithLabelValues("retried").Inc()
	in.logger.Warn("cannot process a submission; retrying", zap.String("subject", d.Subject), zap.Uint64("sequence", d.Sequence),
		zap.Error(cause), zap.Duration("after", retryAfter))
	d.Retry(retryAfter)
}
