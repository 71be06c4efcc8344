// Package budget bounds the time of reading one message, and the memory of all
// messages that are read concurrently.
//
// Go cannot end a function from outside, so work past its time runs on: a Budget
// counts it, and reports when only a new process helps. The package is not for
// validating messages.
package budget

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// ErrSpent is wrapped when the work took too long.
var ErrSpent = errors.New("reading exceeded its time limit")

// ErrExhausted means that too many abandoned readers still run.
var ErrExhausted = errors.New("too many abandoned readers still run; only a restart ends them")

// Limits are what a Budget allows.
type Limits struct {
	// Each is the time limit of one piece of work.
	Each time.Duration
	// Memory bounds the bytes of all concurrent work together, as Needs counts them.
	Memory int64
	// Abandoned is how many abandoned pieces of work may still run.
	Abandoned int64
}

// Default returns limits that allow one message of the largest size at a time, or more
// than twenty messages of 3 KiB. The memory is half of intake's limit in the chart.
func Default() Limits { return Limits{Each: 10 * time.Second, Memory: 256 << 20, Abandoned: 4} }

// Allocated bytes per byte read, measured with the worst documents: decoding empty
// objects, whose number the limit on values bounds, and the tree that YAML is parsed
// into before its values are counted.
const (
	decodedFactor = 3000
	decodedMost   = 64 << 10
	parsedFactor  = 150
)

// Needs returns how many bytes of memory reading a message of that size may take.
func Needs(size int) int64 {
	return int64(min(size, decodedMost))*decodedFactor + int64(size)*parsedFactor
}

// aliveEvery is how often Do calls alive.
const aliveEvery = time.Second

// Budget is shared by all readers of a process. Its methods may be called
// concurrently.
type Budget struct {
	limits    Limits
	memory    *semaphore.Weighted
	abandoned atomic.Int64
	spent     chan struct{}
}

// New returns an unused Budget.
func New(limits Limits) *Budget {
	return &Budget{limits: limits, memory: semaphore.NewWeighted(limits.Memory), spent: make(chan struct{}, 1)}
}

// Do runs the work on a message of that size and returns its result; meanwhile it calls
// alive, unless nil, periodically. An error that wraps ErrSpent means that the work was
// abandoned: it may still run, so it must not share anything with its caller.
func Do[T any](ctx context.Context, b *Budget, size int, alive func(), work func() T) (result T, err error) {
	results := make(chan T, 1)
	if err := b.do(ctx, size, alive, func() { results <- work() }); err != nil {
		return result, err
	}
	return <-results, nil
}

func (b *Budget) do(ctx context.Context, size int, alive func(), work func()) error {
	weight := min(Needs(size), b.limits.Memory)
	pulse := time.NewTicker(aliveEvery)
	defer pulse.Stop()
	if err := b.acquire(ctx, weight, pulse.C, alive); err != nil {
		return err
	}
	done := make(chan struct{})
	var abandoned atomic.Bool
	go func() {
		defer b.memory.Release(weight)
		work()
		close(done)
		if !abandoned.CompareAndSwap(false, true) {
			b.abandoned.Add(-1)
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
			if !abandoned.CompareAndSwap(false, true) {
				<-done // the work has just ended
				return nil
			}
			if b.abandoned.Add(1) > b.limits.Abandoned {
				select {
				case b.spent <- struct{}{}:
				default:
				}
			}
			return fmt.Errorf("%w of %s; submit a smaller manifest", ErrSpent, b.limits.Each)
		}
	}
}

// acquire waits for the memory, and calls alive at each pulse meanwhile.
func (b *Budget) acquire(ctx context.Context, weight int64, pulse <-chan time.Time, alive func()) error {
	if b.memory.TryAcquire(weight) {
		return nil
	}
	acquired := make(chan error, 1)
	go func() { acquired <- b.memory.Acquire(ctx, weight) }()
	for {
		select {
		case err := <-acquired:
			return err
		case <-pulse:
			call(alive)
		}
	}
}

func call(alive func()) {
	if alive != nil {
		alive()
	}
}

// Watch returns ErrExhausted when too many abandoned pieces of work still run, or the
// error of ctx.
func (b *Budget) Watch(ctx context.Context) error {
	select {
	case <-b.spent:
		return ErrExhausted
	case <-ctx.Done():
		return ctx.Err()
	}
}
