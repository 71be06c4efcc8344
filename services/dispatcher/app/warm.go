package app

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"muster.dev/muster/pkg/service/pause"
)

// warmAgain is the pause after the API server was warmed, and after an attempt without an answer.
const warmAgain = 5 * time.Second

// warmer has the API server prepare for the creations of users each time it may have begun again,
// so that none of them waits for that.
type warmer struct {
	cluster interface {
		Connected() <-chan struct{}
		Warm(ctx context.Context, namespace string) error
	}
	logger *zap.Logger
	again  time.Duration

	mu        sync.Mutex
	namespace string
	known     chan struct{} // closed when there is a namespace
}

func newWarmer(d *dispatcher) *warmer {
	return &warmer{cluster: d.client, logger: d.logger, again: warmAgain, known: make(chan struct{})}
}

// use notes a namespace in which gangs are created.
func (w *warmer) use(namespace string) {
	if namespace == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.namespace == "" {
		close(w.known)
	}
	w.namespace = namespace
}

func (w *warmer) used() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.namespace
}

// run warms the API server after each new connection, until ctx ends. It begins when a namespace is
// known.
func (w *warmer) run(ctx context.Context) error {
	select {
	case <-w.known:
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		select {
		case <-w.cluster.Connected():
		case <-ctx.Done():
			return ctx.Err()
		}
		began, namespace := time.Now(), w.used()
		for {
			err := w.cluster.Warm(ctx, namespace)
			if err == nil {
				w.logger.Debug("warmed the API server", zap.String("namespace", namespace), zap.Duration("after", time.Since(began)))
			} else {
				w.logger.Debug("cannot warm the API server yet", zap.Error(err))
			}
			if paused := pause.For(ctx, w.again); paused != nil {
				return paused
			}
			if err == nil {
				break
			}
		}
	}
}
