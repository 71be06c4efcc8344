package engine

import (
	"context"

	"muster.dev/muster/pkg/state"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// Store is where decisions are committed.
type Store interface {
	// Prepare makes the transaction that writes the changes and what they were
	// decided on; one of no changes asks whether the leader still is.
	Prepare(changes state.Changes, record store.Record) (store.Transaction, error)
	// Probe finds what of changes cannot be stored, and writes nothing. The SQLSTATE passing,
	// if any, counts as a refusal, too.
	Probe(ctx context.Context, changes state.Changes, record store.Record, passing string) ([]store.Refusal, error)
}

// Writer commits the decisions of a step, in their order: nothing of a decision is
// settled or handed to the relay before it is written. Write may run beside Step.Apply and Prepare,
// one call at a time.
type Writer struct {
	store  Store
	ending *endings
}

// NewWriter returns the writer of a step's decisions.
func NewWriter(store Store, step *Step) *Writer {
	return &Writer{store: store, ending: &step.ending}
}

// Prepare makes the transaction of a decision. It comes before the next step, which
// changes what the decision refers to. After an error the messages have been given back.
func (w *Writer) Prepare(decision *Decision) error {
	transaction, err := w.store.Prepare(decision.Changes, decision.record) // an empty one, too: only a leader may settle
	if err != nil {
		redeliver(decision.Batch)
		return err
	}
	decision.transaction = transaction
	w.ending.add(decision.Changes)
	return nil
}

// Write writes a prepared decision, hands its messages to the relay, which publishes them
// later, and settles what came in.
// After an error nothing has been settled or given back, and the state rests on what may
// not be there: discard it.
func (w *Writer) Write(ctx context.Context, decision *Decision, handToRelay func([]store.Outgoing)) error {
	outgoing, err := decision.transaction(ctx)
	decision.traced.end(err)
	if err != nil {
		return err
	}
	handToRelay(outgoing)
	for _, settle := range decision.settle {
		settle()
	}
	w.ending.remove(decision.Changes)
	return nil
}
