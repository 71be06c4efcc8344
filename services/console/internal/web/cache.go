package web

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// answers keeps what the HTTP API has answered for a moment, so that the open pages of a caller
// ask each question once. The caller is a part of the key, so that no caller gets the answer to
// the question of another. Its methods may be called concurrently.
type answers struct {
	now func() time.Time

	mu        sync.Mutex
	kept      map[question]*answer
	under, of map[string]int // by caller: questions under way, and answers kept
}

// question is what one caller asks. Its bounds are of the caller, who may have several tokens.
type question struct{ caller, token, what string }

// asks is a question of the caller.
func (c *caller) asks(what string) question { return question{c.Caller, c.Token, what} }

type answer struct {
	done  chan struct{} // closed when there is a value or an error
	value any
	err   error
	until time.Time // set before done is closed
}

const (
	// mostAnswers bounds what is kept, and mostKeptOfOne that of one caller.
	mostAnswers, mostKeptOfOne = 4096, 256
	// mostUnderWay bounds the questions of one caller that have no answer yet: they outlive the
	// page that asks them. It is less than the HTTP API answers at a time, so that the caller's
	// other programs are answered, too.
	mostUnderWay = 48
	// askMost bounds the time of one question.
	askMost = 20 * time.Second
	// freshError bounds how long an error is kept.
	freshError = time.Second
)

func newAnswers(now func() time.Time) *answers {
	return &answers{now: now, kept: map[question]*answer{}, under: map[string]int{}, of: map[string]int{}}
}

// ask returns the answer to a question: one that is at most fresh old, or that of a question
// under way, or a new one. ctx bounds the wait; the question goes on for others without it.
func ask[Value any](ctx context.Context, a *answers, q question, fresh time.Duration, do func(context.Context) (Value, error)) (Value, error) {
	var none Value
	of, err := a.begin(ctx, q, fresh, func(ctx context.Context) (any, error) { return do(ctx) })
	if err != nil {
		return none, err
	}
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

func (a *answers) begin(ctx context.Context, q question, fresh time.Duration, do func(context.Context) (any, error)) (*answer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known := a.kept[q]; known != nil && !a.old(known) {
		return known, nil
	}
	a.removeOld()
	if a.under[q.caller] >= mostUnderWay {
		return nil, refuse(http.StatusTooManyRequests, "Too much is being asked for you. Try again.")
	}
	of := &answer{done: make(chan struct{})}
	a.under[q.caller]++
	if len(a.kept) < mostAnswers && a.of[q.caller] < mostKeptOfOne {
		a.kept[q] = of
		a.of[q.caller]++
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askMost)
		defer cancel()
		of.value, of.err = do(ctx)
		keep := fresh
		if of.err != nil {
			keep = min(fresh, freshError)
		}
		of.until = a.now().Add(keep)
		a.answered(q, of)
		// Large answers, such as all nodes, are not kept longer than they are used.
		time.AfterFunc(keep, func() { a.forget(q, of) })
	}()
	return of, nil
}

// answered ends a question that was under way.
func (a *answers) answered(q question, of *answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	less(a.under, q.caller)
	close(of.done)
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
			a.drop(q)
		}
	}
}

func (a *answers) forget(q question, of *answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kept[q] == of {
		a.drop(q)
	}
}

// drop removes an answer that is kept.
func (a *answers) drop(q question) {
	delete(a.kept, q)
	less(a.of, q.caller)
}

// less counts one less of a caller.
func less(counts map[string]int, caller string) {
	if counts[caller]--; counts[caller] == 0 {
		delete(counts, caller)
	}
}
