package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

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

// outcomes returns the workloads of which it is known that they were accepted. A command is
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
//
// When the lost time began is known by the clock of Postgres, and when NATS stored a message
// by that of NATS. The two may differ by more than keptMargin, so workloads that would be lost
// are looked for in all that NATS has.
func (r Recovery) resubmit(ctx context.Context) (requeued []workload.ID, err error) {
	outcomes, read := outcomes(r.Found), map[workload.ID]bool{}
	requeued, err = r.takeIn(ctx, r.LastCommit.Add(-keptMargin), outcomes, func(m bus.Delivery) bool {
		if p := submittedBy(m); p != nil {
			read[p.Workload.ID] = true
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	missing, err := r.missing(ctx, outcomes, read)
	if err != nil || len(missing) == 0 {
		return requeued, err
	}
	older, err := r.takeIn(ctx, time.Unix(0, 0), outcomes, func(m bus.Delivery) bool { return missing[workloadOf(m)] })
	return append(requeued, older...), err
}

// missing returns the workloads that were accepted and that neither the ledger has nor what was
// read of the submissions.
func (r Recovery) missing(ctx context.Context, outcomes map[workload.ID]outcome, read map[workload.ID]bool) (map[workload.ID]bool, error) {
	var ids []workload.ID
	for _, id := range slices.Sorted(maps.Keys(outcomes)) {
		if outcomes[id] == accepted && !read[id] && !r.Step.State.Has(id) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	known, err := r.Step.known(ctx, ids)
	if err != nil {
		return nil, err
	}
	missing := map[workload.ID]bool{}
	for _, id := range ids {
		if _, stored := known[id]; !stored {
			missing[id] = true
		}
	}
	return missing, nil
}

// takeIn applies once more what is due of the messages that NATS has from a moment on and that
// are wanted, and returns which workloads are live by it.
func (r Recovery) takeIn(ctx context.Context, from time.Time, outcomes map[workload.ID]outcome, wanted func(bus.Delivery) bool) (requeued []workload.ID, err error) {
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
	err = r.Submissions.Since(ctx, from, func(m bus.Delivery) error {
		if !wanted(m) {
			return nil
		}
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
			if wanted, err = r.submitsAgain(ctx, &p.Workload, m.Stored, stored, outcomes); err != nil {
				return nil, err
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

// submitsAgain reports whether a submission is to be applied once more: what was accepted, unless an
// event has given it up since, and what has no answer.
func (r Recovery) submitsAgain(ctx context.Context, w *workload.Workload, submitted time.Time, stored bool, outcomes map[workload.ID]outcome) (bool, error) {
	reported := outcomes[w.ID]
	if reported == over || reported == unreported && stored {
		return false, nil
	}
	last, err := r.Submissions.LastEvent(ctx, w.Queue, w.ID)
	switch {
	case err != nil:
		return false, err
	case reported == accepted:
		return last == nil || !gaveUp(*last, submitted), nil
	case last != nil && Answers(*last):
		return false, nil
	}
	outcomes[w.ID] = accepted // and so is what is asked for it
	return true, nil
}

// workloadOf returns the workload that a message submits or is about; empty for other messages.
func workloadOf(m bus.Delivery) workload.ID {
	_, payload, err := m.Event()
	if err != nil {
		return ""
	}
	switch p := payload.(type) {
	case *event.WorkloadSubmitted:
		return p.Workload.ID
	case event.Request:
		return p.About()
	}
	return ""
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
