package engine

import (
	"context"
	"time"

	"muster.dev/muster/pkg/state"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// commit is a decision on its way to Postgres.
type commit struct {
	decision *Decision
	began    time.Time
	written  chan<- error // nil unless a caller waits
}

// commitQueue has decisions written one after the other while the next one is made. A
// decision thus rests on commits that may still fail. When one fails the term ends, and
// all that was decided after it is discarded.
type commitQueue struct {
	writer *Writer
	// handToRelay gives the messages of a commit to the relay; it does not wait.
	handToRelay func([]store.Outgoing)
	// observe is called with the changes of a commit and how long it took.
	observe func(state.Changes, time.Duration)
	waiting chan commit
}

// inFlight is how many decisions may wait for the one that is being written.
const inFlight = 1

// commitError marks a failure of a transaction that carried a decision.
type commitError struct {
	decision *Decision
	cause    error
	blamed   bool // what it failed for was found
}

func (e *commitError) Error() string { return e.cause.Error() }

func (e *commitError) Unwrap() error { return e.cause }

// run writes until ctx ends or a commit fails.
func (q *commitQueue) run(ctx context.Context) error {
	defer q.redeliverRest()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case next := <-q.waiting:
			if err := q.write(ctx, next); err != nil {
				return err
			}
		}
	}
}

// redeliverRest has the messages of what was not written delivered again to the next term.
func (q *commitQueue) redeliverRest() {
	for {
		select {
		case next := <-q.waiting:
			redeliver(next.decision.Batch)
		default:
			return
		}
	}
}

func (q *commitQueue) write(ctx context.Context, next commit) error {
	err := q.writer.Write(ctx, next.decision, q.handToRelay)
	if next.written != nil {
		next.written <- err
	}
	if err != nil {
		return &commitError{decision: next.decision, cause: err}
	}
	q.observe(next.decision.Changes, time.Since(next.began))
	return nil
}

// add hands a prepared decision over. It waits while too many are on their way; when ctx
// ends first the batch is given back.
func (q *commitQueue) add(ctx context.Context, next commit) error {
	select {
	case q.waiting <- next:
		return nil
	case <-ctx.Done():
		redeliver(next.decision.Batch)
		return ctx.Err()
	}
}

// flush waits until everything that was added is written.
func (q *commitQueue) flush(ctx context.Context, epoch int64) error {
	empty := &Decision{Changes: state.Changes{Epoch: epoch}}
	if err := q.writer.Prepare(empty); err != nil {
		return err
	}
	written := make(chan error, 1)
	if err := q.add(ctx, commit{decision: empty, began: time.Now(), written: written}); err != nil {
		return err
	}
	select {
	case err := <-written:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
