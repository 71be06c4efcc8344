package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/pkg/state"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// received is a message of a batch that could be read.
type received struct {
	bus.Delivery
	envelope event.Envelope
	payload  event.Payload
}

// applyBatch applies a batch to the state and returns what settles its messages after the
// commit.
func (s *Step) applyBatch(ctx context.Context, batch []bus.Delivery, now time.Time) (settle []func(), err error) {
	messages, ids := s.read(ctx, batch)
	known, err := s.known(ctx, ids)
	if store.Suspect(err) {
		err = s.diagnoseReads(ctx, messages, ids, err)
	}
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		settled, err := s.apply(ctx, m, known, now)
		if err != nil {
			return nil, err
		}
		if settled != nil {
			settle = append(settle, settled)
		}
	}
	return settle, nil
}

// read decodes a batch, and returns the ids of the workloads that the ledger is asked for.
// It dead-letters what cannot be read, and what ended an earlier term.
func (s *Step) read(ctx context.Context, batch []bus.Delivery) (messages []received, ids []workload.ID) {
	for _, d := range batch {
		if cause, known := s.poison.cause(d); known {
			s.deadLetter(ctx, d, cause)
			continue
		}
		envelope, payload, err := d.Event()
		if err != nil {
			s.deadLetter(ctx, d, err.Error())
			continue
		}
		named := namedIn(payload)
		if slices.ContainsFunc(named, func(id workload.ID) bool { return !s.isID(ctx, id, d) }) {
			continue
		}
		messages, ids = append(messages, received{d, envelope, payload}), append(ids, named...)
	}
	return messages, ids
}

// isID reports whether an id is one of a workload, and dead-letters the message otherwise.
func (s *Step) isID(ctx context.Context, id workload.ID, d bus.Delivery) bool {
	if err := uuid.Validate(string(id)); err != nil {
		s.deadLetter(ctx, d, fmt.Sprintf("workload id %q is no UUID", id))
		return false
	}
	return true
}

// apply applies one message, and returns what settles it after the commit; nil when it is
// settled already, or is a last value that stays where it is.
func (s *Step) apply(ctx context.Context, m received, known map[workload.ID]state.Known, now time.Time) (settle func(), err error) {
	if answer, is := m.payload.(*event.CheckAnswer); is != event.IsCheckedSubject(m.Subject) || is && m.Subject != event.CheckedSubject(answer.Check) {
		s.deadLetter(ctx, m.Delivery, fmt.Sprintf("%s of %q is not for subject %.100q: the answers of an AdmissionCheck are on its own subject, and nothing else is", m.envelope.Type, m.payload.CloudEventSubject(), m.Subject))
		return nil, nil
	}
	switch p := m.payload.(type) {
	case *event.WorkloadSubmitted:
		if _, err := s.applyMessage(m, storedAs(p, known), now); err != nil {
			return nil, err
		}
		return s.settleSubmission(ctx, m, p), nil
	case event.Request:
		return s.applyRequest(ctx, m, p.About(), known, now)
	case *event.NodeObserved, *event.NodeRemoved, *event.NamespaceObserved, *event.CapacitySynced, *event.GangObserved, *event.GangStatus, *event.PermissionAsked:
		if m.Settles() { // an observation is no work; no reader would settle it
			s.deadLetter(ctx, m.Delivery, p.EventType()+" is not for queue-manager to do")
			return nil, nil
		}
		if err := event.CheckObservation(m.Subject, p, now); err != nil {
			s.deadLetter(ctx, m.Delivery, err.Error())
			return nil, nil
		}
		_, err := s.applyMessage(m, nil, now)
		return nil, err
	default:
		s.deadLetter(ctx, m.Delivery, p.EventType()+" is not for queue-manager")
		return nil, nil
	}
}

// settleSubmission settles a submission that the state has taken in. The state writes nothing
// about a workload in quarantine, so the answer to the same submission again is published
// beside the outbox.
func (s *Step) settleSubmission(ctx context.Context, m received, p *event.WorkloadSubmitted) func() {
	record, live := s.State.Record(p.Workload.ID)
	if !live || !s.State.IsFrozen(record.ID) || record.Digest != p.Workload.Digest {
		return m.Ack
	}
	return func() {
		for _, queue := range slices.Compact([]string{record.Queue, p.Workload.Queue}) { // it may have been moved
			id := fmt.Sprintf("queue-manager/again/%s/%s/%d/%d", record.ID, queue, m.Sequence, m.Stored.UnixNano())
			if err := s.Publish(ctx, event.EventsSubject(queue, record.ID), id, &event.WorkloadChanged{Record: record.ForTenant()}); err != nil {
				s.Logger.Warn("cannot answer the repeated submission of a workload in quarantine; retrying", zap.String("workload", string(record.ID)), zap.Error(err))
				m.Retry(requestRetryAfter)
				return
			}
		}
		m.Ack()
	}
}

// storedAs returns what the ledger has of a submission, or of the workload whose former id
// it names; nil for nothing.
func storedAs(p *event.WorkloadSubmitted, known map[workload.ID]state.Known) *state.Known {
	if found, ok := known[p.Workload.ID]; ok {
		return &found
	}
	if found, ok := known[p.Former]; ok && p.Former != "" && found.Submitter == p.Workload.Submitter {
		found.Former, found.Record = p.Former, nil
		return &found
	}
	return nil
}

// applyRequest applies what is asked of a workload. One that is stored and not live has
// finished.
func (s *Step) applyRequest(ctx context.Context, m received, id workload.ID, known map[workload.ID]state.Known, now time.Time) (settle func(), err error) {
	_, stored := known[id]
	if !stored && !s.State.Has(id) { // there is nothing to do, and nothing to record
		return s.settleEarly(ctx, id, m, now), nil
	}
	s.early.over(m.Delivery)
	if _, err := s.applyMessage(m, nil, now); err != nil {
		return nil, err
	}
	if s.State.IsFrozen(id) {
		return func() {
			s.deadLetter(ctx, m.Delivery, fmt.Sprintf("workload %s is in quarantine, because the database refuses to store decisions about it; release it from quarantine first", id))
		}, nil
	}
	return m.Ack, nil
}
