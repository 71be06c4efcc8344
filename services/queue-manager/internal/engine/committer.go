package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"muster.dev/muster/pkg/book"
	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/pkg/workload"
	"muster.dev/muster/services/queue-manager/internal/store"
)

// commit is a batch that has been decided.
type commit struct {
	prepared *store.Prepared
	changes  book.Changes // to count only: the book goes on meanwhile
	batch    []bus.Delivery
	settle   []func()
	began    time.Time
	written  chan<- error // nil unless somebody waits
}

// committer writes batches one after the other while the next one is decided.
// Decisions thus rest on commits that may still fail; then the term ends, and all
// that was decided after them is thrown away with it.
type committer struct {
	*engine
	queue chan commit

	mu sync.Mutex
	// ending are the workloads that end in a commit that is not written yet: they
	// are in the book no more, and in Postgres not as ended.
	ending map[workload.ID]book.Known
}

// inFlight is how many batches may wait for the one that is being written.
const inFlight = 1

func newCommitter(e *engine) *committer {
	return &committer{engine: e, queue: make(chan commit, inFlight), ending: map[workload.ID]book.Known{}}
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
			giveBack(next.batch)
		default:
			return
		}
	}
}

func (c *committer) write(ctx context.Context, next commit) error {
	outgoing, err := c.Store.Write(ctx, next.prepared)
	if next.written != nil {
		next.written <- err
	}
	if errors.Is(err, store.ErrBadData) && len(next.batch) == 1 {
		return c.setApart(ctx, next.batch[0], err)
	}
	if err != nil {
		giveBack(next.batch)
		return &commitError{err}
	}
	c.Metrics.observe(next.changes, time.Since(next.began))
	c.relay.Hand(outgoing)
	for _, settled := range next.settle {
		settled()
	}
	c.note(next.changes, false)
	return nil
}

// add hands a batch over and notes what ends in it. It waits while too many are
// on their way; when ctx ends first the batch is given back.
func (c *committer) add(ctx context.Context, next commit) error {
	c.note(next.changes, true)
	select {
	case c.queue <- next:
		return nil
	case <-ctx.Done():
		giveBack(next.batch)
		return ctx.Err()
	}
}

// flush waits until everything that was added is written.
func (c *committer) flush(ctx context.Context, epoch int64) error {
	prepared, err := c.Store.Prepare(book.Changes{Epoch: epoch})
	if err != nil {
		return err
	}
	written := make(chan error, 1)
	if err := c.add(ctx, commit{prepared: prepared, began: time.Now(), written: written}); err != nil {
		return err
	}
	select {
	case err := <-written:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// note remembers, or forgets, the workloads that end with the changes.
func (c *committer) note(changes book.Changes, ending bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	each := func(r workload.Record) {
		switch {
		case !r.Phase.Final() || r.Holding:
		case ending:
			c.ending[r.ID] = book.Known{Digest: r.Digest, Phase: r.Phase}
		default:
			delete(c.ending, r.ID)
		}
	}
	for _, a := range changes.Added {
		each(a.Record)
	}
	for _, r := range changes.Updated {
		each(r)
	}
}

// known completes what Postgres has of the given workloads.
func (c *committer) known(ids []workload.ID, stored map[workload.ID]book.Known) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		if k, ok := c.ending[id]; ok {
			stored[id] = k
		}
	}
}
