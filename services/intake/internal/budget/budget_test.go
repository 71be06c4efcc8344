package budget

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestWorkIsGivenUpInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := New(Limits{Each: 3 * time.Second, Memory: Needs(10), Abandoned: 1})
		release := make(chan struct{})
		began := time.Now()
		alive := 0
		if err := b.do(t.Context(), 4, func() { alive++ }, func() { <-release }); !errors.Is(err, ErrSpent) || time.Since(began) != 3*time.Second {
			t.Errorf("error %v after %s, want ErrSpent after 3s", err, time.Since(began))
		}
		if alive < 2 {
			t.Errorf("asked %d times to say that work goes on", alive)
		}
		watched, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if err := b.Watch(watched); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("one given up: %v", err)
		}
		if err := b.do(t.Context(), 4, nil, func() { <-release }); !errors.Is(err, ErrSpent) {
			t.Errorf("the second: %v", err)
		}
		if err := b.Watch(t.Context()); !errors.Is(err, ErrExhausted) {
			t.Errorf("two given up: %v, want ErrExhausted", err)
		}
		close(release)
		synctest.Wait()
		if got := b.abandoned.Load(); got != 0 {
			t.Errorf("%d counted as running after they ended", got)
		}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := New(Limits{Each: time.Minute, Memory: Needs(10), Abandoned: 1})
		release, first := make(chan struct{}), make(chan error, 1)
		go func() { first <- b.do(t.Context(), 100, nil, func() { <-release }) }()
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ran := false
		if err := b.do(short, 1, nil, func() { ran = true }); !errors.Is(err, context.DeadlineExceeded) || ran {
			t.Errorf("beside a message that takes all: error %v, ran %v", err, ran)
		}
		close(release)
		if err := <-first; err != nil {
			t.Error(err)
		}
		if err := b.do(t.Context(), 1, nil, func() { ran = true }); err != nil || !ran {
			t.Errorf("afterwards: error %v, ran %v", err, ran)
		}
	})
}
