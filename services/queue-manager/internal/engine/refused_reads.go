package engine

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// refusedReadError ends a term: the database refuses to read what it has of the workloads of
// some messages. They are given up, and the next term goes on without them.
type refusedReadError struct {
	refused []Refused
	cause   error
}

func (e *refusedReadError) Error() string {
	return fmt.Sprintf("what the database has of the workloads of %d messages cannot be read: %v", len(e.refused), e.cause)
}

// unknownWorkload is an id that no workload has.
const unknownWorkload workload.ID = "00000000-0000-0000-0000-000000000000"

// diagnoseReads finds the messages of a batch for whose workloads a read was refused. It
// returns the refusal itself when the database refuses to read a workload that is not
// there, too: then no message is to blame.
func (s *Step) diagnoseReads(ctx context.Context, messages []received, ids []workload.ID, cause error) error {
	if _, err := s.Archive.Known(ctx, []workload.ID{unknownWorkload}); err != nil {
		return cause
	}
	refused := map[workload.ID]error{}
	if err := s.probeReads(ctx, ids, refused); err != nil {
		return err
	}
	failed := &refusedReadError{cause: cause}
	for _, m := range messages {
		for _, id := range namedIn(m.payload) {
			if why := refused[id]; why != nil {
				failed.refused = append(failed.refused, Refused{m.Delivery, why})
				break
			}
		}
	}
	if len(failed.refused) == 0 {
		return cause // all of them can be read now
	}
	return failed
}

// probeReads notes which workloads cannot be read, by halves.
func (s *Step) probeReads(ctx context.Context, ids []workload.ID, refused map[workload.ID]error) error {
	_, err := s.Archive.Known(ctx, ids)
	switch {
	case err == nil:
		return nil
	case !store.Suspect(err):
		return err
	case len(ids) == 1:
		refused[ids[0]] = err
		return nil
	}
	half := len(ids) / 2
	return errors.Join(s.probeReads(ctx, ids[:half], refused), s.probeReads(ctx, ids[half:], refused))
}

// namedIn are the workloads of a message that the ledger is asked for.
func namedIn(payload event.Payload) []workload.ID {
	switch p := payload.(type) {
	case *event.WorkloadSubmitted:
		if p.Former != "" {
			return []workload.ID{p.Workload.ID, p.Former}
		}
		return []workload.ID{p.Workload.ID}
	case event.Request:
		return []workload.ID{p.About()}
	}
	return nil
}

// without returns the messages of a batch that are not to be given up because of an
// error.
func without(batch []bus.Delivery, err error) []bus.Delivery {
	var failed *refusedReadError
	if !errors.As(err, &failed) {
		return batch
	}
	return Diagnosis{Rejected: failed.refused}.Others(batch)
}

// rejectUnreadable rejects submissions whose workload the database cannot read, and has
// other messages dead-lettered when the next term gets them. The term is over.
func (l *leader) rejectUnreadable(ctx context.Context, failed *refusedReadError) {
	for _, r := range failed.refused {
		_, payload, _ := r.Event() // it was read before
		if _, is := payload.(*event.WorkloadSubmitted); is {
			l.reject(ctx, r)
			continue
		}
		l.Metrics.notStorable.WithLabelValues("message").Inc()
		l.Logger.Error("cannot read the workload of a message from the database; the next term dead-letters the message", zap.String("subject", r.Subject), zap.Error(r.Cause))
		l.memory.poison.add(r.Delivery, "cannot read its workload from the database: "+r.Cause.Error())
		r.Retry(0)
	}
}
