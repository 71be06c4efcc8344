package app

import (
	"context"
	"sync"
)

// shared makes one answer for all who ask at once, because each takes connections of Postgres.
// An answer begins after its question, so that who has changed something sees the change: those
// who ask while one is made share the next. Its methods may be called concurrently.
type shared[Answer any] struct {
	collect func() (Answer, error)

	mu     sync.Mutex
	making bool
	next   *sharedAnswer[Answer] // nil while none has asked for it
}

type sharedAnswer[Answer any] struct {
	done  chan struct{} // closed when there is a value or an error
	value Answer
	err   error
}

// ask waits for an answer until ctx ends. The answer is made for the others, too.
func (s *shared[Answer]) ask(ctx context.Context) (none Answer, err error) {
	s.mu.Lock()
	if s.next == nil {
		s.next = &sharedAnswer[Answer]{done: make(chan struct{})}
	}
	of := s.next
	if !s.making {
		s.making = true
		go s.makeAll()
	}
	s.mu.Unlock()
	select {
	case <-ctx.Done():
		return none, ctx.Err()
	case <-of.done:
		return of.value, of.err
	}
}

// makeAll makes answers, one after another, as long as any is asked for.
func (s *shared[Answer]) makeAll() {
	for {
		s.mu.Lock()
		of := s.next
		s.next, s.making = nil, of != nil
		s.mu.Unlock()
		if of == nil {
			return
		}
		of.value, of.err = s.collect()
		close(of.done)
	}
}
