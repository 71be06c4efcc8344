package relay

import (
	"sync/atomic"

	"muster.dev/muster/services/queue-manager/internal/store"
)

// backlog is how far a publisher is behind the commits of its term, by numbers in the outbox. The
// publisher notes what is published, and the one that commits what is committed; any goroutine may
// read it.
type backlog struct {
	committed, published atomic.Int64
	moved                chan struct{}
}

func newBacklog() *backlog { return &backlog{moved: make(chan struct{}, 1)} }

func (b *backlog) commit(messages []store.Outgoing) {
	b.committed.Store(messages[len(messages)-1].Seq)
}

func (b *backlog) publish(last int64) {
	b.published.Store(last)
	select {
	case b.moved <- struct{}{}:
	default: // it is noted already
	}
}

// Backlog returns how many messages this term has committed that may not be in the stream of
// commands yet. It is an upper bound: events between them count, too.
func (r *Relay) Backlog() int64 {
	b := r.commands.backlog
	return max(0, b.committed.Load()-b.published.Load())
}

// Moved delivers when commands have been published since it last did.
func (r *Relay) Moved() <-chan struct{} { return r.commands.backlog.moved }
