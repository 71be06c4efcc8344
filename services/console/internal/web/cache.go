package web

import (
	"context"
	"sync"
	"time"
)

// answers keeps what the HTTP API has answered for a moment, so that the open pages of a caller
// ask each question once. The caller is a part of the key: nobody gets an answer that another
// has asked for. Its methods may be called concurrently.
type answers struct {
	now func() time.Time

	mu   sync.Mutex
	kept map[question]*answer
}

// question is what one caller asks.
type question struct{ token, what string }

type answer struct {
	done  chan struct{} // closed when there is a value or an error
	value any
	err   error
	until time.Time // set before done is closed
}

// mostAnswers bounds what is kept, and askMost the time of one question.
const (
	mostAnswers = 4096
	askMost     = 20 * time.Second
)

func newAnswers(now func() time.Time) *answers {
	return &answers{now: now, kept: map[question]*answer{}}
}

// ask returns the answer to a question: one that is at most fresh old, or that of a question
// under way, or a new one. ctx bounds the wait; the question goes on for others without it.
func ask[Value any](ctx context.Context, a *answers, q question, fresh time.Duration, do func(context.Context) (Value, error)) (Value, error) {
	var none Value
	of := a.begin(ctx, q, fresh, func(ctx context.Context) (any, error) { return do(ctx) })
	select {
	case <-ctx.Done():
		return none, ctx.Err()
	case <-of.done:
	}
	if of.err != nil {
		return none, of.err
	}
	return of.value.(Value), nil
}

func (a *answers) begin(ctx context.Context, q question, fresh time.Duration, do func(context.Context) (any, error)) *answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known := a.kept[q]; known != nil && !a.old(known) {
		return known
	}
	a.removeOld()
	of := &answer{done: make(chan struct{})}
	if len(a.kept) < mostAnswers {
		a.kept[q] = of
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askMost)
		defer cancel()
		of.value, of.err = do(ctx)
		of.until = a.now().Add(fresh)
		close(of.done)
		// Large answers, such as all nodes, are not kept longer than they are used.
		time.AfterFunc(fresh, func() { a.forget(q, of) })
	}()
	return of
}

// old reports whether an answer is there and too old.
func (a *answers) old(of *answer) bool {
	select {
	case <-of.done:
		return a.now().After(of.until)
	default:
		return false
	}
}

func (a *answers) removeOld() {
	for q, of := range a.kept {
		if a.old(of) {
			delete(a.kept, q)
		}
	}
}

func (a *answers) forget(q question, of *answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kept[q] == of {
		delete(a.kept, q)
	}
}
