package engine

import (
	"context"
	"errors"
	"slices"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/message/event"
	"muster.dev/muster/pkg/spec/workload"
	"muster.dev/muster/services/queue-manager/internal/relay"
)

// outcome is what the streams report of a workload that the ledger may not know.
type outcome int

const (
	unreported outcome = iota // it may have been refused, or no event reports it
	accepted                  // it was in the ledger
	over                      // it had ended
)

// outcomes says of which workloads it is known that they were accepted. A command is
// published beside the events, and may be there without one.
func outcomes(found relay.Found) map[workload.ID]outcome {
	all := map[workload.ID]outcome{}
	for _, c := range found.Commands {
		all[c.Workload] = accepted
		if c.State == event.Forgotten {
			all[c.Workload] = over
		}
	}
	for _, last := range found.LastEvents {
		all[last.ID] = accepted
		if last.Phase.Final() {
			all[last.ID] = over
		}
	}
	return all
}

// resubmit applies once more what was accepted in the lost time, or was not answered,
// and returns which workloads are live by it.
func (r Recovery) resubmit(ctx context.Context) (requeued []workload.ID, err error) {
	outcomes := outcomes(r.Found)
	var batch []bus.Delivery
	flush := func() error {
		due, err := r.due(ctx, batch, outcomes)
		if err != nil {
			return err
		}
		live, err := r.applyAgain(ctx, due)
		if err != nil {
			return err
		}
		batch, requeued = nil, append(requeued, live...)
		return r.Save(due)
	}
	err = r.Submissions.Since(ctx, r.LastCommit.Add(-keptMargin), func(m bus.Delivery) error {
		if batch = append(batch, m); len(batch) < recoverBatch {
			return nil
		}
		return flush()
	})
	if err == nil && len(batch) > 0 {
		err = flush()
	}
	if errors.Is(err, bus.ErrNoStream) {
		return requeued, nil
	}
	return requeued, err
}

// due returns the messages that are to be applied once more: submissions that were
// accepted, or that have no answer, and what was asked for workloads that are there.
func (r Recovery) due(ctx context.Context, batch []bus.Delivery, outcomes map[workload.ID]outcome) (due []bus.Delivery, err error) {
	var silent []workload.ID
	for _, m := range batch {
		if p := submittedBy(m); p != nil && outcomes[p.Workload.ID] == unreported {
			silent = append(silent, p.Workload.ID)
		}
	}
	known, err := r.Step.known(ctx, silent)
	if err != nil {
		return nil, err
	}
	for _, m := range batch {
		_, payload, err := m.Event()
		if err != nil {
			continue // it was given up when it came first
		}
		wanted := false
		switch p := payload.(type) {
		case *event.WorkloadSubmitted:
			_, stored := known[p.Workload.ID]
			wanted = outcomes[p.Workload.ID] == accepted
			if outcomes[p.Workload.ID] == unreported && !stored {
				answered, err := r.Submissions.Answered(ctx, p.Workload.Queue, p.Workload.ID)
				if err != nil {
					return nil, err
				}
				if wanted = !answered; wanted {
					outcomes[p.Workload.ID] = accepted // and so is what is asked for it
				}
			}
		case event.Request:
			wanted = outcomes[p.About()] == accepted || r.Step.State.Has(p.About())
			if wanted {
				r.asked.note(p, m.Stored)
			}
		}
		if wanted {
			due = append(due, m)
		}
	}
	return due, nil
}

// submittedBy returns the submission of a message; nil for other messages.
func submittedBy(m bus.Delivery) *event.WorkloadSubmitted {
	_, payload, err := m.Event()
	if err != nil {
		return nil
	}
	p, _ := payload.(*event.WorkloadSubmitted)
	return p
}

// applyAgain applies messages once more, and returns which workloads are live by it.
func (r Recovery) applyAgain(ctx context.Context, batch []bus.Delivery) (requeued []workload.ID, err error) {
	var fresh []workload.ID
	for _, m := range batch {
		if p := submittedBy(m); p != nil && !r.Step.State.Has(p.Workload.ID) {
			fresh = append(fresh, p.Workload.ID)
		}
	}
	if _, err := r.Step.applyBatch(ctx, batch, r.Now); err != nil { // there is nothing to settle
		return nil, err
	}
	return slices.DeleteFunc(fresh, func(id workload.ID) bool { return !r.Step.State.Has(id) }), nil
}
