package app

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/bus"
	"muster.dev/muster/services/intake/internal/submission"
	"muster.dev/muster/services/intake/internal/trial"
)

const (
	// suspectAfter is the delivery from which on a message is first read in a trial
	// process, because earlier readers may have died of it.
	suspectAfter = 3
	// survivedMost bounds the memory of messages that were read and are redelivered
	// because their results could not be published. A forgotten one gets another trial.
	survivedMost = 10_000
)

// Trial belongs at the start of main of a program that runs intake. In a trial process
// it reads the message and exits; otherwise it returns.
func Trial() { trial.Main(nil) }

// suspects tracks messages that may have killed the processes that read them. Its
// methods may be called concurrently.
type suspects struct {
	atOnce chan struct{} // held by the running trial

	mu       sync.Mutex
	survived map[uint64]bool // by sequence
}

func newSuspects() *suspects {
	return &suspects{atOnce: make(chan struct{}, 1), survived: map[uint64]bool{}}
}

// is reports whether the message needs a trial: it was redelivered and no process is
// known to have survived it.
func (s *suspects) is(d bus.Delivery) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return d.Attempts >= suspectAfter && !s.survived[d.Sequence]
}

// clear records that this process has read the message.
func (s *suspects) clear(d bus.Delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.survived) >= survivedMost {
		clear(s.survived)
	}
	s.survived[d.Sequence] = true
}

func (s *suspects) forget(d bus.Delivery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.survived, d.Sequence)
}

// survives reads a suspect message in another process. It reports false if that
// process died, and an error when intake stops.
func (in *intake) survives(ctx context.Context, d bus.Delivery, message submission.Message) (bool, error) {
	alive := time.NewTicker(time.Second)
	defer alive.Stop()
	tried := make(chan error, 1)
	go func() {
		select {
		case in.suspects.atOnce <- struct{}{}:
			defer func() { <-in.suspects.atOnce }()
			tried <- trial.Run(ctx, in.operator, message)
		case <-ctx.Done():
			tried <- ctx.Err()
		}
	}()
	for {
		select {
		case err := <-tried:
			if err != nil && ctx.Err() == nil && !errors.Is(err, trial.ErrDied) {
				in.logger.Warn("cannot try a suspect message; reading it without a trial", zap.String("subject", d.Subject), zap.Error(err))
			}
			return !errors.Is(err, trial.ErrDied), ctx.Err()
		case <-alive.C:
			d.Working()
		}
	}
}
