package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/ray"
	"muster.dev/muster/pkg/service"
	"muster.dev/muster/pkg/tracing"
	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/services/intake/internal/budget"
	"muster.dev/muster/services/intake/internal/submission"
)

// newResults registers the metric of what became of submissions.
func newResults(registry *prometheus.Registry) *prometheus.CounterVec {
	results := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "muster_intake_submissions_total", Help: "Submissions read, by what became of them.",
	}, []string{"result"})
	registry.MustRegister(results)
	return results
}

// intake reads what is published on the submit subjects: the messages of a subject
// one after the other, those of different subjects at the same time.
type intake struct {
	bus       *bus.Bus
	tracer    tracing.Tracer
	logger    *zap.Logger
	results   *prometheus.CounterVec
	budget    *budget.Budget
	published chan underway
	// read is submission.Read for the operator.
	read func(submission.Message) (submission.Result, error)
}

func newIntake(operator ray.Operator, b *bus.Bus, spending *budget.Budget, runtime *service.Runtime) *intake {
	return &intake{
		bus: b, tracer: runtime.Tracer, logger: runtime.Logger, results: newResults(runtime.Metrics), budget: spending,
		published: make(chan underway, underWay),
		read:      func(m submission.Message) (submission.Result, error) { return submission.Read(operator, m) },
	}
}

// run reads submissions until ctx ends, and calls ready when it begins.
func (in *intake) run(ctx context.Context, ready func()) error {
	var read func()
	err := service.Patiently(ctx, in.logger, "read submissions", anyError, func() (err error) {
		read, err = in.bus.Handle(ctx, bus.Work{Stream: bus.SubmitStream, Durable: bus.IntakeDurable}, in.take)
		return err
	})
	if err != nil {
		return err
	}
	ready()
	waiting, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	context.AfterFunc(ctx, func() { time.AfterFunc(stopTimeout, giveUp) })
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

// underway is a message whose results are on their way to the server.
type underway struct {
	delivery bus.Delivery
	said     []said
}

// said is the result of one submission.
type said struct {
	result submission.Result
	stored bus.Published
	span   tracing.Span
}

// take reads a message within its budget and publishes the results without waiting
// for the server: those of a subject are stored in the order of the submissions.
func (in *intake) take(ctx context.Context, d bus.Delivery) {
	message := messageOf(d)
	read, err := budget.Do(ctx, in.budget, len(d.Data), d.Working, func() []readOne { return in.readAll(message) })
	switch {
	case errors.Is(err, budget.ErrSpent):
		in.giveUp(ctx, d, message, err)
		return
	case err != nil:
		d.Retry(0) // intake stops
		return
	}
	u := underway{delivery: d}
	for _, one := range read {
		s, err := in.say(one)
		if err != nil {
			for _, before := range u.said {
				before.span.End(err)
			}
			in.again(ctx, d, message, err)
			return
		}
		u.said = append(u.said, s)
	}
	in.published <- u
}

func messageOf(d bus.Delivery) submission.Message {
	submitter := workload.DoorNATS
	if _, user := bus.SubmittedBy(d.Subject); user != "" {
		submitter += "/" + user
	}
	return submission.Message{Subject: d.Subject, Submitter: submitter, Headers: d.Headers, Data: d.Data, Sequence: d.Sequence, Stored: d.Stored}
}

// readOne is a submission of a message as read.
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

// say publishes what is to be said of a submission.
func (in *intake) say(one readOne) (said, error) {
	result, err := one.result, one.err
	if err != nil {
		return said{}, fmt.Errorf("%w: %w", errUnreadable, err)
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
	return said{result, stored, span}, err
}

// errUnreadable is wrapped when Muster itself is at fault with a submission.
var errUnreadable = errors.New("no result can be made of the submission")

// mostAttempts bounds the deliveries of a message for which Muster finds no result:
// it would find none the next time either.
const mostAttempts = 10

// again has a message delivered again whose result could not be published, or gives
// it up when that would go on for ever.
func (in *intake) again(ctx context.Context, d bus.Delivery, message submission.Message, cause error) {
	if d.Attempts >= mostAttempts && (errors.Is(cause, errUnreadable) || errors.Is(cause, bus.ErrTooLarge)) {
		in.giveUp(ctx, d, message, cause)
		return
	}
	in.retry(d, cause)
}

// giveUp tells the submitter that a message is not read, and keeps it with the
// reason for the operator.
func (in *intake) giveUp(ctx context.Context, d bus.Delivery, message submission.Message, cause error) {
	rejected, err := budget.Do(ctx, in.budget, len(d.Data), d.Working, func() readOne {
		result, err := submission.Reject(message, cause)
		return readOne{message, result, err}
	})
	result, failed := rejected.result, errors.Join(err, rejected.err)
	if failed != nil { // it does not even say what it calls itself
		result, failed = submission.GiveUp(message, cause)
	}
	if failed == nil {
		waiting, cancel := context.WithTimeout(ctx, storeTimeout)
		defer cancel()
		failed = in.bus.Publish(waiting, result.Subject, result.Event)
	}
	if failed != nil && !errors.Is(failed, bus.ErrTooLarge) {
		in.retry(d, errors.Join(cause, failed))
		return
	}
	in.results.WithLabelValues("given up").Inc()
	in.logger.Error("submission given up", zap.String("subject", d.Subject), zap.Uint64("sequence", d.Sequence), zap.Error(cause))
	in.bus.Bury(ctx, d, cause.Error())
}

// settle acknowledges messages whose results the server has. When waiting ends it
// gives the others back.
func (in *intake) settle(waiting context.Context) {
	for u := range in.published {
		ctx, cancel := context.WithTimeout(waiting, storeTimeout)
		var failed error
		for _, s := range u.said {
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
		for _, s := range u.said {
			in.count(s.result, u.delivery.Subject)
		}
	}
}

// count counts and logs what became of a submission.
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
	in.logger.Warn("submission will be read again", zap.String("subject", d.Subject), zap.Uint64("sequence", d.Sequence), zap.Error(cause))
	d.Retry(retryAfter)
}
