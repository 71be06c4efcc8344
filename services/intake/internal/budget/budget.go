// Package budget bounds what reading one message may take: the time until it is
// given up, and the bytes of all messages that are read at once.
//
// It is not for judging messages. Go cannot end a function from outside, so one
// that is given up runs on: a Budget counts those, and says when there are so many
// that only a new process helps.
package budget

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// ErrSpent is wrapped when the work took longer than it may.
var ErrSpent = errors.New("reading it takes too long")

// ErrExhausted says that too many readers have been given up and still run.
var ErrExhausted = errors.New("too many messages take too long to read; a new process begins without them")

// Limits are what a Budget allows.
type Limits struct {
	// Each is the time that one piece of work has.
	Each time.Duration
	// Bytes bounds the messages that are read at the same time, together.
	Bytes int64
	// GivenUp is how many pieces of work may run on after they were given up.
	GivenUp int64
}

// Default limits: a message of the largest size is read in milliseconds, and the
// memory that it takes meanwhile is less than forty times its size.
func Default() Limits { return Limits{Each: 10 * time.Second, Bytes: 8 << 20, GivenUp: 4} }

// aliveEvery is how often whoever waits is asked to say that work goes on.
const aliveEvery = time.Second

// Budget is shared by all readers of a process. Its methods may be called
// concurrently.
type Budget struct {
	limits  Limits
	bytes   *semaphore.Weighted
	givenUp atomic.Int64
	spent   chan struct{}
}

// New returns a Budget of which nothing is spent.
func New(limits Limits) *Budget {
	return &Budget{limits: limits, bytes: semaphore.NewWeighted(limits.Bytes), spent: make(chan struct{}, 1)}
}

// Do returns what the work on a message of that size returns; alive, unless nil, is
// called now and then meanwhile. An error that wraps ErrSpent says that the work
// was given up: it may still run, so it must not share anything with its caller.
func Do[T any](ctx context.Context, b *Budget, size int, alive func(), work func() T) (result T, err error) {
	results := make(chan T, 1)
	if err := b.do(ctx, size, alive, func() { results <- work() }); err != nil {
		return result, err
	}
	return <-results, nil
}

func (b *Budget) do(ctx context.Context, size int, alive func(), work func()) error {
	weight := min(int64(size), b.limits.Bytes)
	done := make(chan struct{})
	pulse := time.NewTicker(aliveEvery)
	defer pulse.Stop()
	acquired := make(chan error, 1)
	if b.bytes.TryAcquire(weight) {
		acquired <- nil
	} else {
		go func() { acquired <- b.bytes.Acquire(ctx, weight) }()
	}
	for waiting := true; waiting; {
		select {
		case err := <-acquired:
			if err != nil {
				return err
			}
			waiting = false
		case <-pulse.C:
			call(alive)
		}
	}
	var givenUp atomic.Bool
	go func() {
		defer b.bytes.Release(weight)
		work()
		close(done)
		if !givenUp.CompareAndSwap(false, true) {
			b.givenUp.Add(-1)
		}
	}()
	limit := time.NewTimer(b.limits.Each)
	defer limit.Stop()
	for {
		select {
		case <-done:
			return nil
		case <-pulse.C:
			call(alive)
		case <-ctx.Done():
			return ctx.Err()
		case <-limit.C:
			if !givenUp.CompareAndSwap(false, true) {
				<-done // it has just ended
				return nil
			}
			if b.givenUp.Add(1) > b.limits.GivenUp {
				select {
				case b.spent <- struct{}{}:
				default:
				}
			}
			return fmt.Errorf("%w: it was given up after %s", ErrSpent, b.limits.Each)
		}
	}
}

func call(alive func()) {
	if alive != nil {
		alive()
	}
}

// Watch returns ErrExhausted when too many pieces of work run on, or the error of
// ctx.
func (b *Budget) Watch(ctx context.Context) error {
	select {
	case <-b.spent:
		return ErrExhausted
	case <-ctx.Done():
		return ctx.Err()
	}
}
