package engine

import (
	"context"
	"time"

	"muster.dev/muster/pkg/book"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// commit is a decision on its way to Postgres.
type commit struct {
	*Decision
	began   time.Time
	written chan<- error // nil unless somebody waits
}

// committer writes batches one after the other while the next one is decided.
// Decisions thus rest on commits that may still fail; then the term ends, and all
// that was decided after them is thrown away with it.
type committer struct {
	*engine
	queue chan commit
}

// inFlight is how many batches may wait for the one that is being written.
const inFlight = 1

func newCommitter(e *engine) *committer {
	return &committer{engine: e, queue: make(chan commit, inFlight)}
}

// run writes until ctx ends or a commit fails.
func (c *committer) run(ctx context.Context) error {
	defer c.giveBackRest()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case next := <-c.queue:
			if err := c.write(ctx, next); err != nil {
				return err
			}
		}
	}
}

// giveBackRest has what was not written delivered again to the next term.
func (c *committer) giveBackRest() {
	for {
		select {
		case next := <-c.queue:
			giveBack(next.Batch)
		default:
			return
		}
	}
}

func (c *committer) write(ctx context.Context, next commit) error {
	err := c.desk.Write(ctx, next.Decision, c.relay.Hand)
	if next.written != nil {
		next.written <- err
	}
	if err != nil {
		return &commitError{Decision: next.Decision, cause: err}
	}
	c.Metrics.observe(next.Changes, time.Since(next.began))
	return nil
}

// add hands a batch over. It waits while too many are on their way; when ctx ends
// first the batch is given back.
func (c *committer) add(ctx context.Context, next commit) error {
	select {
	case c.queue <- next:
		return nil
	case <-ctx.Done():
		giveBack(next.Batch)
		return ctx.Err()
	}
}

// flush waits until everything that was added is written.
func (c *committer) flush(ctx context.Context, epoch int64) error {
	empty, err := c.desk.Ledger.Prepare(book.Changes{Epoch: epoch}, store.Record{})
	if err != nil {
		return err
	}
	written := make(chan error, 1)
	if err := c.add(ctx, commit{Decision: &Decision{transaction: empty}, began: time.Now(), written: written}); err != nil {
		return err
	}
	select {
	case err := <-written:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
