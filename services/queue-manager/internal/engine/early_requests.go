package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
)

// What is asked of a workload may overtake its submission; it is tried again for a while.
// A cancellation waits for much longer, because a submission that comes after it would run
// against the wish of its submitter: intake may be away, or have other work before it.
const (
	requestRetries    = 10
	requestRetryAfter = 500 * time.Millisecond
	// waitsFrom is the delivery of a cancellation at which an event reports that it waits, and
	// waitsTries how many more publish the same event, in case it was lost.
	waitsFrom  = 5
	waitsTries = 3
	// cancelPatience is how long a cancellation waits, by NATS' time of it.
	cancelPatience = time.Hour
	// cancelRetryMost bounds how long a cancellation comes after its submission.
	cancelRetryMost = 10 * time.Second
	// earlyMost bounds the cancellations of a queue that wait: each is a message that is not
	// settled, and NATS hands out a limited number of those.
	earlyMost = 100
)

// earlyRequests are the cancellations that wait for their submissions, by subject, with the
// time of the last delivery of each. They are in NATS, so a term may forget them.
type earlyRequests map[string]map[message]time.Time

// waits notes that a message waits. It reports false when too many do.
func (e earlyRequests) waits(d bus.Delivery, now time.Time) bool {
	of := e[d.Subject]
	if of == nil {
		of = map[message]time.Time{}
		e[d.Subject] = of
	}
	m := messageOf(d)
	if _, already := of[m]; !already && len(of) >= earlyMost {
		for other, last := range of { // what was purged comes no more
			if now.Sub(last) > 10*cancelRetryMost {
				delete(of, other)
			}
		}
		if len(of) >= earlyMost {
			return false
		}
	}
	of[m] = now
	return true
}

func (e earlyRequests) over(d bus.Delivery) { delete(e[d.Subject], messageOf(d)) }

// settleEarly settles what is asked of a workload that does not exist, or not yet.
func (s *Step) settleEarly(ctx context.Context, id workload.ID, m received, now time.Time) func() {
	if _, cancels := m.payload.(*event.WorkloadCancel); cancels {
		age := max(now.Sub(m.Stored), 0)
		if s.early == nil {
			s.early = earlyRequests{}
		}
		if age < cancelPatience && s.early.waits(m.Delivery, now) {
			return func() {
				s.announceWaiting(ctx, id, m)
				m.Retry(min(max(age/4, requestRetryAfter), cancelRetryMost))
			}
		}
		s.early.over(m.Delivery)
	}
	if m.Attempts <= requestRetries {
		return func() { m.Retry(requestRetryAfter) }
	}
	return func() {
		s.deadLetter(ctx, m.Delivery, fmt.Sprintf("workload %s does not exist; the request cannot be applied", id))
	}
}

// announceWaiting publishes what a cancellation waits for, and until when. A few deliveries
// do so; NATS drops all but the first of the same event.
func (s *Step) announceWaiting(ctx context.Context, id workload.ID, m received) {
	if m.Attempts < waitsFrom || m.Attempts >= waitsFrom+waitsTries {
		return
	}
	queue, until := strings.TrimPrefix(m.Subject, event.WorkloadSubject("")), m.Stored.Add(cancelPatience).UTC()
	eventID := fmt.Sprintf("queue-manager/waits/%s/%d/%d", id, m.Sequence, m.Stored.UnixNano())
	err := s.Publish(ctx, event.EventsSubject(queue, id), eventID, &event.RequestWaits{
		Workload: id, Queue: queue, Request: m.payload.EventType(), Until: until,
		Message: fmt.Sprintf("the cancellation arrived before the submission of the workload; it is kept until %s, then discarded", until.Format(time.RFC3339)),
	})
	fields := []zap.Field{zap.String("workload", string(id)), zap.String("subject", m.Subject), zap.Time("until", until)}
	if err != nil {
		s.Logger.Warn("cannot publish that a cancellation waits for its submission", append(fields, zap.Error(err))...)
		return
	}
	if m.Attempts == waitsFrom {
		s.Logger.Info("cancellation waits for its submission", fields...)
	}
}
