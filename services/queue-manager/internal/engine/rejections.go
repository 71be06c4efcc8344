package engine

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// reject gives a submission up that cannot be stored.
func (l *leader) reject(ctx context.Context, r Refused) {
	l.Metrics.notStorable.WithLabelValues("submission").Inc()
	l.step.Reject(ctx, r, l.memory, func(id string, rejected *event.WorkloadRejected) error {
		return l.publish(ctx, event.EventsSubject(rejected.Queue, rejected.Workload), id, rejected)
	})
}

// publish publishes an event beside the outbox.
func (l *leader) publish(ctx context.Context, subject, id string, payload event.Payload) error {
	envelope, err := event.New(id, event.QueueManagerSource, time.Now(), payload)
	if err != nil {
		return err
	}
	return l.Bus.Publish(ctx, subject, envelope)
}

// A rejection that cannot be published is tried with the next delivery, after
// rejectAgain, until there were rejectTries: the message must not end terms for ever.
const (
	rejectAgain = 5 * time.Second
	rejectTries = 5
)

// Reject ends a submission that cannot be stored: publish sends the reason to its
// submitter, and the message is kept with the reason. A submission whose rejection cannot be
// published comes again, because its submitter waits for an answer.
func (s *Step) Reject(ctx context.Context, r Refused, memory *Memory, publish func(id string, rejected *event.WorkloadRejected) error) {
	_, payload, _ := r.Event()
	submitted, ok := payload.(*event.WorkloadSubmitted)
	if !ok {
		return
	}
	w := submitted.Workload
	reason := "the submission cannot be stored: " + r.Cause.Error()
	s.Logger.Error("cannot store a submission; rejecting it", zap.String("workload", string(w.ID)), zap.Error(r.Cause))
	// The message is part of the id: NATS drops what has the id of another message.
	id := fmt.Sprintf("queue-manager/unstorable/%s/%d/%d", w.ID, r.Sequence, r.Stored.UnixNano())
	err := publish(id, &event.WorkloadRejected{
		Workload: w.ID, Queue: w.Queue, MessageID: submitted.MessageID,
		Reason: workload.Reason{Kind: workload.ReasonNotStorable, Message: reason},
	})
	if err != nil {
		s.Logger.Error("cannot publish the rejection of a submission", zap.String("workload", string(w.ID)), zap.Error(err))
		if r.Attempts < rejectTries {
			r.Retry(rejectAgain)
			return
		}
	}
	memory.poison.add(r.Delivery, reason) // if the dead letter cannot be kept
	s.deadLetter(ctx, r.Delivery, reason)
}
